{{/* Google Cloud's GPU machines A3 Mega and A3 Ultra: what their networks and drivers want of a NodeSet that runs on them. */}}

{{/* "true" when any NodeSet is for such machines. */}}
{{- define "slurm.usesGoogle" -}}
{{- if concat (.Values.vendor.google.a3mega | default list) (.Values.vendor.google.a3ultra | default list) -}}true{{- end -}}
{{- end -}}

{{/* A NodeSet with what its machines want. Call with (dict "root" $ "key" "..." "nodeset" <map>). */}}
{{- define "slurm.withGoogle" -}}
{{- $nodeset := .nodeset -}}
{{- range $model := list "a3mega" "a3ultra" -}}
{{- range $entry := index $.root.Values.vendor.google $model | default list -}}
{{- if eq $entry.targetNodeSet $.key -}}
{{- if ne (len ($entry.networks | default list)) 9 -}}
{{- fail (printf "vendor.google.%s for the nodeset %q needs exactly 9 networks, not %d: the host's own and one for each GPU" $model $.key (len ($entry.networks | default list))) -}}
{{- end -}}
{{- $addition := include (printf "slurm.google.%s" $model) $entry | fromYaml -}}
{{- $nodeset = include "slurm.google.joined" (dict "own" $nodeset "addition" $addition) | fromJson -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $nodeset -}}
{{- end -}}

{{/* Both together, as JSON: maps merge, lists merge by name, and what the user set stays. */}}
{{- define "slurm.google.joined" -}}
{{- $joined := deepCopy .own -}}
{{- range $key, $value := .addition -}}
{{- $own := get $joined $key -}}
{{- if kindIs "map" $value -}}
{{- $_ := set $joined $key (include "slurm.google.joined" (dict "own" ($own | default dict) "addition" $value) | fromJson) -}}
{{- else if kindIs "slice" $value -}}
{{- $names := list -}}
{{- range $own | default list }}{{ $names = append $names .name }}{{ end -}}
{{- $list := $own | default list -}}
{{- range $value }}{{ if not (has .name $names) }}{{ $list = append $list . }}{{ end }}{{ end -}}
{{- $_ := set $joined $key $list -}}
{{- else if not (hasKey $joined $key) -}}
{{- $_ := set $joined $key $value -}}
{{- end -}}
{{- end -}}
{{- toJson $joined -}}
{{- end -}}

{{/* The networks as GKE wants them: the first at eth0, the others from eth<first> on. */}}
{{- define "slurm.google.interfaces" -}}
{{- $all := list -}}
{{- range $index, $network := .networks -}}
{{- $number := ternary 0 (add $index $.first -1) (eq $index 0) -}}
{{- $all = append $all (dict "interfaceName" (printf "eth%d" (int $number)) "network" $network) -}}
{{- end -}}
{{- toJson $all -}}
{{- end -}}

{{- define "slurm.google.a3ultra" -}}
extraConfMap:
  Gres: gpu:nvidia_h200:8
metadata:
  annotations:
    networking.gke.io/default-interface: eth0
    networking.gke.io/interfaces: {{ include "slurm.google.interfaces" (dict "networks" .networks "first" 2) | quote }}
slurmd:
  env:
    - name: LD_LIBRARY_PATH
      value: /usr/local/nvidia/lib64
    - name: PATH
      value: /usr/local/nvidia/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  resources:
    limits:
      nvidia.com/gpu: 8
    requests:
      nvidia.com/gpu: 8
  volumeMounts:
    - name: library-dir-host
      mountPath: /usr/local/nvidia
    - name: gib
      mountPath: /usr/local/gib
podSpec:
  nodeSelector:
    cloud.google.com/gke-nodepool: {{ .nodePool | quote }}
  volumes:
    - name: library-dir-host
      hostPath:
        path: /home/kubernetes/bin/nvidia
    - name: gib
      hostPath:
        path: /home/kubernetes/bin/gib
    - name: sys
      hostPath:
        path: /sys
    - name: proc-sys
      hostPath:
        path: /proc/sys
{{- end -}}

{{- define "slurm.google.a3mega" -}}
extraConfMap:
  Gres: gpu:nvidia_h100_80gb_hbm3:8
metadata:
  annotations:
    devices.gke.io/container.tcpxo-daemon: |
      {{- range until 8 }}
      - path: /dev/nvidia{{ . }}
      {{- end }}
      - path: /dev/nvidiactl
      - path: /dev/nvidia-uvm
      - path: /dev/dmabuf_import_helper
    networking.gke.io/default-interface: eth0
    networking.gke.io/interfaces: {{ include "slurm.google.interfaces" (dict "networks" .networks "first" 1) | quote }}
slurmd:
  env:
    - name: LD_LIBRARY_PATH
      value: /usr/local/nvidia/lib64
    - name: NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY
      value: /dev/aperture_devices
  resources:
    limits:
      nvidia.com/gpu: 8
    requests:
      nvidia.com/gpu: 8
  volumeMounts:
    - name: aperture-devices
      mountPath: /dev/aperture_devices
podSpec:
  nodeSelector:
    cloud.google.com/gke-nodepool: {{ .nodePool | quote }}
  containers:
    # Receives for the GPUs directly from the network cards (GPUDirect-TCPXO).
    - name: tcpxo-daemon
      image: us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/tcpgpudmarxd-dev:v1.0.21
      imagePullPolicy: Always
      command: [/bin/sh, -c]
      args:
        - chmod 755 /fts/entrypoint_rxdm_container.sh && exec /fts/entrypoint_rxdm_container.sh --num_hops=2 --num_nics=8 --uid= --alsologtostderr
      env:
        - name: LD_LIBRARY_PATH
          value: /usr/local/nvidia/lib64
      securityContext:
        capabilities:
          add: [NET_ADMIN, NET_BIND_SERVICE]
      volumeMounts:
        - name: libraries
          mountPath: /usr/local/nvidia/lib64
        - name: sys
          mountPath: /hostsysfs
        - name: proc-sys
          mountPath: /hostprocsysfs
  volumes:
    - name: libraries
      hostPath:
        path: /home/kubernetes/bin/nvidia/lib64
    - name: sys
      hostPath:
        path: /sys
    - name: proc-sys
      hostPath:
        path: /proc/sys
    - name: aperture-devices
      hostPath:
        path: /dev/aperture_devices
{{- end -}}
