{{- define "redrive.name" -}}
{{- if contains "redrive" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-redrive" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "redrive.selector" -}}
app.kubernetes.io/name: redrive
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "redrive.labels" -}}
{{ include "redrive.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "redrive.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* The config, with the addresses that the probes and the Service use. */}}
{{- define "redrive.config" -}}
{{- $metrics := dict "listen" (printf "0.0.0.0:%v" .Values.metrics.port) -}}
{{- toYaml (merge (dict "listen" "0.0.0.0:8080" "metrics" $metrics) .Values.config) }}
{{- end }}

{{/* Fails when no component has a role. */}}
{{- define "redrive.checkRoles" -}}
{{- $all := list -}}
{{- range .Values.components }}{{ $all = concat $all .roles }}{{ end -}}
{{- range $role := list "api" "ingest" "replay" "watch" }}
{{- if not (has $role $all) }}{{ fail (printf "No component has the role %q. Add it to components.*.roles." $role) }}{{ end }}
{{- end }}
{{- end }}

{{/* Fails for settings that work in no cluster. */}}
{{- define "redrive.checkSettings" -}}
{{- if and .Values.ingress.enabled (not .Values.config.trustProxy) }}
{{- fail "With ingress.enabled, set config.trustProxy to the addresses of the ingress controller, such as [10.0.0.0/8]. Otherwise all users share one rate limit, and the audit log has the address of the controller." }}
{{- end }}
{{- if and .Values.metrics.podMonitor .Values.networkPolicy.enabled (not .Values.networkPolicy.metricsFrom) }}
{{- fail "With metrics.podMonitor, set networkPolicy.metricsFrom to the pods of Prometheus. Otherwise the NetworkPolicy blocks it." }}
{{- end }}
{{- end }}

{{/* The protocol of the probes: the server has TLS with config.tls. */}}
{{- define "redrive.scheme" -}}
{{- if .Values.config.tls }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}

{{/* What the container of the server and that of the migration share. */}}
{{- define "redrive.container" -}}
image: {{ include "redrive.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
env:
  {{- range .Values.secret.keys }}
  - { name: {{ . }}_FILE, value: /run/secrets/redrive/{{ . }} }
  {{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
volumeMounts:
  - { name: config, mountPath: /etc/redrive, readOnly: true }
  - { name: secrets, mountPath: /run/secrets/redrive, readOnly: true }
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
