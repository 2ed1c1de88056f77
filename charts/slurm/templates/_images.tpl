{{/* Images come in two sets: those of this project, and those that Slinky publishes, whose tags end in a distribution. */}}
{{- define "slurm.images.ours" -}}ghcr.io/kubeslurm{{- end -}}
{{- define "slurm.images.tag" -}}26.05{{- end -}}
{{- define "slurm.images.slinky" -}}ghcr.io/slinkyproject{{- end -}}
{{- define "slurm.images.slinkyTag" -}}26.05-ubuntu26.04{{- end -}}

{{/* An image as text, from text or from repository, tag and digest; empty when there is none.
Call with (dict "name" "slurmd" "image" <text or map>). */}}
{{- define "slurm.image" -}}
{{- if kindIs "string" .image -}}
{{- .image -}}
{{- else -}}
{{- $whole := include "slurm.image.whole" . | fromJson -}}
{{- if and $whole.repository $whole.digest -}}
{{- printf "%s@%s" $whole.repository $whole.digest -}}
{{- else if and $whole.repository $whole.tag -}}
{{- printf "%s:%s" $whole.repository $whole.tag -}}
{{- else -}}
{{- $whole.repository -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Repository, tag and digest as JSON. Where only one half names its set, the other half comes from the same set: a tag of Slinky's is
not looked for among our images, nor ours among Slinky's. */}}
{{- define "slurm.image.whole" -}}
{{- $ours := printf "%s/%s" (include "slurm.images.ours" .) .name -}}
{{- $repository := (.image).repository | default "" -}}
{{- $tag := (.image).tag | default "" | toString -}}
{{- $digest := (.image).digest | default "" -}}
{{- $ofSlinky := regexMatch "-(ubuntu|rockylinux)[0-9.]+$" $tag -}}
{{- if and (eq .name "alpine") $tag (not $repository) -}}
{{- $repository = "docker.io/library/alpine" -}}
{{- else if and (eq $repository $ours) $ofSlinky (not $digest) -}}
{{- $repository = printf "%s/%s" (include "slurm.images.slinky" .) .name -}}
{{- else if and (contains "slinkyproject/" $repository) (eq $tag (include "slurm.images.tag" .)) -}}
{{- $tag = include "slurm.images.slinkyTag" . -}}
{{- end -}}
{{- dict "repository" $repository "tag" $tag "digest" $digest | toJson -}}
{{- end -}}

{{/* The container of slurmd as JSON. With ssh it needs the image that has an sshd; one that is not ours stays. */}}
{{- define "slurm.slurmd" -}}
{{- $slurmd := deepCopy .slurmd -}}
{{- if and .ssh.enabled (kindIs "map" $slurmd.image) -}}
{{- $whole := include "slurm.image.whole" (dict "name" "slurmd" "image" $slurmd.image) | fromJson -}}
{{- if and (eq $whole.repository (printf "%s/slurmd" (include "slurm.images.ours" .))) (not $whole.digest) -}}
{{- $_ := set $slurmd "image" (set $whole "repository" (printf "%s-ssh" $whole.repository)) -}}
{{- end -}}
{{- end -}}
{{- toJson $slurmd -}}
{{- end -}}

{{/* What to tell about images of which only one half is set, one line for each. */}}
{{- define "slurm.images.remarks" -}}
{{- $all := list (dict "place" "controller.slurmctld" "name" "slurmctld" "image" .Values.controller.slurmctld.image) -}}
{{- $all = append $all (dict "place" "restapi.slurmrestd" "name" "slurmrestd" "image" .Values.restapi.slurmrestd.image) -}}
{{- $all = append $all (dict "place" "accounting.slurmdbd" "name" "slurmdbd" "image" .Values.accounting.slurmdbd.image) -}}
{{- range $key, $nodeset := include "slurm.nodesets" . | fromJson -}}
{{- $all = append $all (dict "place" (printf "nodesets.%s.slurmd" $key) "name" "slurmd" "image" $nodeset.slurmd.image) -}}
{{- end -}}
{{- range $key, $loginset := include "slurm.loginsets" . | fromJson -}}
{{- $all = append $all (dict "place" (printf "loginsets.%s.login" $key) "name" "login" "image" $loginset.login.image) -}}
{{- end -}}
{{- range $all -}}
{{- if kindIs "map" .image -}}
{{- $whole := include "slurm.image.whole" . | fromJson -}}
{{- $ours := eq $whole.repository (printf "%s/%s" (include "slurm.images.ours" .) .name) -}}
{{- $changed := or (ne $whole.repository (.image.repository | default "")) (ne $whole.tag (.image.tag | default "" | toString)) -}}
{{- if or $changed (and $ours (ne $whole.tag (include "slurm.images.tag" .)) (not $whole.digest)) }}
{{ .place }}.image: only one of repository and tag is set; {{ include "slurm.image" . }} is used. Set both.
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
