{{/* Made by `kubeslurm rbac` from what each controller declares in its registration.py; do not edit. */}}

{{- define "slurm-operator.rules.operator.objects" }}
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create, delete, get, list, patch, watch]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [create, get, patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [create, delete, get, list, patch, watch]
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [secrets]
  verbs: [create, delete, get, list, patch, watch]
- apiGroups: [""]
  resources: [services]
  verbs: [create, get, list, patch, watch]
- apiGroups: ["apps"]
  resources: [controllerrevisions]
  verbs: [create, delete, get, list, patch, watch]
- apiGroups: ["apps"]
  resources: [deployments]
  verbs: [create, get, list, patch, watch]
- apiGroups: ["apps"]
  resources: [statefulsets]
  verbs: [create, get, list, patch, watch]
- apiGroups: ["events.k8s.io"]
  resources: [events]
  verbs: [create, patch]
- apiGroups: ["monitoring.coreos.com"]
  resources: [servicemonitors]
  verbs: [create, delete, get, patch]
- apiGroups: ["policy"]
  resources: [poddisruptionbudgets]
  verbs: [create, get, list, patch, watch]
- apiGroups: ["slinky.slurm.net"]
  resources: [accountings]
  verbs: [get, list, patch, watch]
- apiGroups: ["slinky.slurm.net"]
  resources: [accountings/finalizers]
  verbs: [update]
- apiGroups: ["slinky.slurm.net"]
  resources: [accountings/status]
  verbs: [patch]
- apiGroups: ["slinky.slurm.net"]
  resources: [controllers]
  verbs: [get, list, patch, watch]
- apiGroups: ["slinky.slurm.net"]
  resources: [controllers/finalizers]
  verbs: [update]
- apiGroups: ["slinky.slurm.net"]
  resources: [controllers/status]
  verbs: [patch]
- apiGroups: ["slinky.slurm.net"]
  resources: [loginsets]
  verbs: [get, list, patch, watch]
- apiGroups: ["slinky.slurm.net"]
  resources: [loginsets/finalizers]
  verbs: [update]
- apiGroups: ["slinky.slurm.net"]
  resources: [loginsets/status]
  verbs: [patch]
- apiGroups: ["slinky.slurm.net"]
  resources: [nodesets]
  verbs: [get, list, patch, watch]
- apiGroups: ["slinky.slurm.net"]
  resources: [nodesets/finalizers]
  verbs: [update]
- apiGroups: ["slinky.slurm.net"]
  resources: [nodesets/status]
  verbs: [patch]
- apiGroups: ["slinky.slurm.net"]
  resources: [restapis]
  verbs: [get, list, patch, watch]
- apiGroups: ["slinky.slurm.net"]
  resources: [restapis/finalizers]
  verbs: [update]
- apiGroups: ["slinky.slurm.net"]
  resources: [restapis/status]
  verbs: [patch]
- apiGroups: ["slinky.slurm.net"]
  resources: [tokens]
  verbs: [get, list, patch, watch]
- apiGroups: ["slinky.slurm.net"]
  resources: [tokens/finalizers]
  verbs: [update]
- apiGroups: ["slinky.slurm.net"]
  resources: [tokens/status]
  verbs: [patch]
{{- end }}

{{- define "slurm-operator.rules.operator.nodes" }}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch]
{{- end }}

{{- define "slurm-operator.rules.operator.nodedrain" }}
- apiGroups: [""]
  resources: [nodes]
  verbs: [patch]
- apiGroups: [""]
  resources: [nodes/status]
  verbs: [patch]
{{- end }}

{{- define "slurm-operator.rules.operator.own" }}
- apiGroups: ["coordination.k8s.io"]
  resources: [leases]
  verbs: [create]
- apiGroups: ["coordination.k8s.io"]
  resources: [leases]
  resourceNames:
    - slurm-operator
  verbs: [get, update]
- apiGroups: ["apps"]
  resources: [deployments]
  resourceNames:
    - {{ include "slurm-operator.fullname" . }}
  verbs: [get, patch]
{{- end }}

{{- define "slurm-operator.rules.operator.other-operators" }}
- apiGroups: ["coordination.k8s.io"]
  resources: [leases]
  resourceNames:
    - slurm-operator
  verbs: [list, watch]
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [list]
- apiGroups: ["authorization.k8s.io"]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}

{{- define "slurm-operator.rules.metrics" }}
- apiGroups: ["authentication.k8s.io"]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: ["authorization.k8s.io"]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}

{{- define "slurm-operator.rules.webhook.objects" }}
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get]
- apiGroups: ["slinky.slurm.net"]
  resources: [nodesets]
  verbs: [list]
{{- end }}

{{- define "slurm-operator.rules.webhook.trust" }}
- apiGroups: ["admissionregistration.k8s.io"]
  resources: [mutatingwebhookconfigurations]
  resourceNames:
    - {{ include "slurm-operator.webhook.fullname" . }}
  verbs: [get, patch]
- apiGroups: ["admissionregistration.k8s.io"]
  resources: [validatingwebhookconfigurations]
  resourceNames:
    - {{ include "slurm-operator.webhook.fullname" . }}
  verbs: [get, patch]
{{- end }}

{{- define "slurm-operator.rules.webhook.secret" }}
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
- apiGroups: [""]
  resources: [secrets]
  resourceNames:
    - {{ include "slurm-operator.certificates.secret" . }}
  verbs: [get, patch]
{{- end }}
