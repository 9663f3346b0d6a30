{{/* The names of the services. */}}
{{- define "yardmaster.services" -}}
[frontend, history, matching, timer]
{{- end -}}

{{/* The name of an object: of the release, with the name of the chart if the release does not contain it. */}}
{{- define "yardmaster.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the pods of one service: (list $ "history"). */}}
{{- define "yardmaster.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* Labels of every object: (list $ "history"). */}}
{{- define "yardmaster.labels" -}}
{{- $root := index . 0 -}}
{{ include "yardmaster.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "yardmaster.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{/* The settings of a service, as YAML: (list $ "history"). */}}
{{- define "yardmaster.config" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $v := $root.Values -}}
{{- $nats := dict -}}
{{- if not $v.nats.urlSecret.name }}{{ $_ := set $nats "url" $v.nats.url }}{{ end -}}
{{- if $v.nats.caSecret }}{{ $_ := set $nats "tls" (dict "ca" "/nats-ca/ca.crt") }}{{ end -}}
{{- $config := dict
  "http" ":8080"
  "nats" $nats
  "history_partitions" $v.cluster.historyPartitions
  "matching_shards" $v.cluster.matchingShards
  "provision" (dict "enabled" (not $v.sealed.enabled) "replicas" $v.cluster.replicas)
-}}
{{- if $v.sealed.enabled -}}
{{- $_ := set $nats "nkey_seed" "/keys/nats.nk" -}}
{{- $_ := set $nats "inbox_prefix" (printf "_INBOX.s.%s" $name) -}}
{{- $_ := set $config "inbox_prefixes" (list "_INBOX.t.{domain}.") -}}
{{- end -}}
{{- if eq $name "matching" -}}
{{- $redis := dict "addrs" $v.redis.addrs "cluster" $v.redis.cluster -}}
{{- if $v.redis.username }}{{ $_ := set $redis "username" $v.redis.username }}{{ end -}}
{{- if $v.redis.passwordSecret }}{{ $_ := set $redis "password_file" "/redis/redis.password" }}{{ end -}}
{{- $tls := dict "enabled" $v.redis.tls -}}
{{- if $v.redis.caSecret }}{{ $_ := set $tls "ca" "/redis-ca/ca.crt" }}{{ end -}}
{{- $_ := set $redis "tls" $tls -}}
{{- $_ := set $config "redis" $redis -}}
{{- end -}}
{{- mergeOverwrite $config (deepCopy $v.config) (deepCopy (index $v $name).config) | toYaml -}}
{{- end -}}

{{/* What a container of the engine may do: nothing that it does not need. */}}
{{- define "yardmaster.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* What all pods have: (list $ "history"). */}}
{{- define "yardmaster.podSpec" -}}
{{- $root := index . 0 -}}
{{- $v := $root.Values -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- with $v.image.pullSecrets }}
imagePullSecrets: {{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- with $v.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $v.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $v.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $v.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
{{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "yardmaster.selector" $ | nindent 8 }}
{{- end }}
{{- end -}}
