{{/* Makes empty sections of those that a values file set to null, so that templates can look into them. Every template calls
this first; it changes the values for all. */}}
{{- define "slurm.sections" -}}
{{- $_ := merge .Values (include "slurm.sections.empty" . | fromYaml) -}}
{{- end -}}

{{- define "slurm.sections.empty" -}}
priorityClass: {}
slurmKey: {}
jwtKey: {}
jwksKeys: {}
isolation: {}
controller:
  externalConfig: {}
  slurmctld: {}
  reconfigure: {}
  logfile: {}
  persistence: {}
restapi:
  pdb: {}
  slurmrestd: {}
accounting:
  externalConfig: {}
  slurmdbd: {}
  storageConfig: {}
  mariadb:
    persistence: {}
sssd: {}
loginsetDefaults: {}
nodesetDefaults: {}
vendor:
  nvidia:
    dcgm: {}
  google: {}
{{- end -}}

{{/* A NodeSet or LoginSet as JSON: what it sets itself, over the defaults, with empty sections of those set to null.
Call with (dict "own" <map or nil> "defaults" <map> "sections" <list of names>). */}}
{{- define "slurm.withDefaults" -}}
{{- $all := mergeOverwrite (deepCopy .defaults) (deepCopy (.own | default dict)) -}}
{{- range $name, $value := .own -}}
{{- if kindIs "invalid" $value }}{{ $_ := unset $all $name }}{{ end -}}
{{- end -}}
{{- range .sections -}}
{{- if not (get $all .) }}{{ $_ := set $all . dict }}{{ end -}}
{{- end -}}
{{- toJson $all -}}
{{- end -}}
