{{/* Makes empty sections of those that a values file set to null, so that templates can look into them. Every template calls
this first; it changes the values for all. */}}
{{- define "slurm-operator.sections" -}}
{{- $_ := merge .Values (include "slurm-operator.sections.empty" . | fromYaml) -}}
{{- end -}}

{{- define "slurm-operator.sections.empty" -}}
crds: {}
operator:
  serviceAccount: {}
  pdb: {}
webhook:
  serviceAccount: {}
  validating: {}
  mutating: {}
  pdb: {}
certManager: {}
{{- end -}}
