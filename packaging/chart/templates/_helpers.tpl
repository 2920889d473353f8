{{/* Services have it, too, whose names have no dots; that of a release may have some. */}}
{{- define "rota.name" -}}
{{ default (replace "." "-" .Release.Name) .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "rota.selector" -}}
app.kubernetes.io/name: rota
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "rota.labels" -}}
{{ include "rota.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "rota.image" -}}
{{- $repository := required "image.repository: name the registry and the repository of the image of rota" .Values.image.repository -}}
{{- with .Values.image.digest }}{{ $repository }}@{{ . }}{{ else }}{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* The flag --own-sign among arguments, for another command: the workers' environment has its own queues. */}}
{{- define "rota.ownSign" -}}
{{- $named := false -}}
{{- range . -}}
{{- if or $named (eq . "--own-sign") (hasPrefix "--own-sign=" .) }}, {{ quote . }}{{ end -}}
{{- $named = eq . "--own-sign" -}}
{{- end -}}
{{- end }}

{{/* Seconds of a duration such as 1m30s, rounded up. */}}
{{- define "rota.seconds" -}}
{{- $sum := 0.0 -}}
{{- range regexFindAll "[0-9.]+(ms|h|m|s)" (toString .) -1 -}}
{{- $unit := get (dict "h" 3600.0 "m" 60.0 "s" 1.0 "ms" 0.001) (regexFind "[a-z]+$" .) -}}
{{- $sum = addf $sum (mulf (float64 (regexFind "^[0-9.]+" .)) $unit) -}}
{{- end -}}
{{- ceil $sum | int -}}
{{- end }}

{{/* The longest drain_timeout, and 5 s each for the grace of the calls, the programs of dealers, and the database. */}}
{{- define "rota.terminationSeconds" -}}
{{- $default := 30 -}}
{{- $longest := include "rota.seconds" .Values.drainTimeout | int -}}
{{- $file := fromYaml .Values.config -}}
{{- with get $file "Error" }}{{ fail (printf "config: it is no YAML: %s" .) }}{{ end -}}
{{- range $task := values (get $file "tasks" | default dict) -}}
{{- $own := get (default dict $task) "drain_timeout" -}}
{{- $longest = max $longest (ternary (include "rota.seconds" $own | int) $default (not (empty $own))) -}}
{{- end -}}
{{- add (ternary $longest $default (gt $longest 0)) 15 -}}
{{- end }}

{{- define "rota.configMap" -}}
{{- if and .Values.config .Values.existingConfigMap }}{{ fail "config and existingConfigMap: give one of them" }}{{ end -}}
{{- if not (or .Values.config .Values.existingConfigMap) }}{{ fail "config: give the text of rota.yaml (--set-file config=rota.yaml), or existingConfigMap" }}{{ end -}}
{{- .Values.existingConfigMap | default (include "rota.name" .) -}}
{{- end }}

{{- define "rota.secret" -}}
{{- with .Values.database -}}
{{- if and .existingSecret .url }}{{ fail "database.existingSecret and database.url: give one of them" }}{{ end -}}
{{- if not (or .existingSecret .url) }}{{ fail "database.existingSecret: name the Secret that has the URL of the database" }}{{ end -}}
{{- end -}}
{{- .Values.database.existingSecret | default (printf "%s-database" (include "rota.name" .)) -}}
{{- end }}

{{/* The Pod Security Standard "restricted". */}}
{{- define "rota.podSecurity" -}}
automountServiceAccountToken: false # no pod asks Kubernetes anything
{{- with .Values.serviceAccountName }}
serviceAccountName: {{ . }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  fsGroup: 65532 # the group of the image's user, which reads the secret
  runAsNonRoot: true
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "rota.restricted" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* What every container that runs rota has. Its mounts come last, so that a container can add its own. */}}
{{- define "rota.container" -}}
image: {{ include "rota.image" . | quote }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{ include "rota.restricted" . }}
{{- $ca := or .Values.caCertificates.secret .Values.caCertificates.configMap }}
{{- if or $ca .Values.extraEnv }}
env:
{{- if $ca }}
  - {name: SSL_CERT_DIR, value: /etc/rota-ca} # beside the file of the image
{{- end }}
{{- with .Values.extraEnv }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end }}
volumeMounts:
  - {name: config, mountPath: /etc/rota, readOnly: true}
  - {name: database, mountPath: /run/secrets/rota, readOnly: true}
{{- if $ca }}
  - {name: ca, mountPath: /etc/rota-ca, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end }}

{{/* Their volumes. */}}
{{- define "rota.volumes" -}}
{{- $root := .root -}}
- name: config
  configMap: {name: {{ .configMap }}}
- name: database
  secret: {secretName: {{ .secret }}, defaultMode: 0440, items: [{key: {{ .key | quote }}, path: database}]}
{{- with $root.Values.caCertificates }}
{{- if and .secret .configMap }}{{ fail "caCertificates.secret and caCertificates.configMap: give one of them" }}{{ end }}
{{- if .secret }}
- name: ca
  secret: {secretName: {{ .secret }}, defaultMode: 0444}
{{- else if .configMap }}
- name: ca
  configMap: {name: {{ .configMap }}}
{{- end }}
{{- end }}
{{- with $root.Values.extraVolumes }}{{ toYaml . | nindent 0 }}{{ end }}
{{- end }}

{{/* Where the pods of a part run, and what they are called. */}}
{{- define "rota.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{- define "rota.podMetadata" -}}
labels:
  {{- include "rota.labels" . | nindent 2 }}
  {{- with .values.podLabels }}{{ toYaml . | nindent 2 }}{{ end }}
annotations: # pods are replaced when their configuration changes
  checksum/config: {{ printf "%s\n%s" .root.Values.config .root.Values.database.url | sha256sum }}
  {{- with .values.podAnnotations }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end }}

{{- define "rota.configData" -}}
data:
  rota.yaml: {{ .Values.config | quote }}
{{- end }}

{{- define "rota.secretData" -}}
stringData:
  {{ .Values.database.key | quote }}: {{ .Values.database.url | quote }}
{{- end }}
