/** The body of our signed webhook, as docs/alerts.md documents it. */
const alert = {
  type: 'object',
  required: ['key', 'id', 'status', 'kind', 'severity', 'summary', 'source', 'startedAt', 'at'],
  properties: {
    key: { type: 'string' },
    id: { type: 'string' },
    status: { enum: ['firing', 'resolved'] },
    kind: { type: 'string' },
    severity: { enum: ['warning', 'critical'] },
    summary: { type: 'string', minLength: 1 },
    source: { type: 'string' },
    startedAt: { type: 'integer' },
    at: { type: 'integer' },
    link: { type: 'string', format: 'uri' },
    runbook: { type: 'string', format: 'uri' },
  },
}

export const WEBHOOK = {
  type: 'object',
  required: ['type', 'at', 'alerts'],
  additionalProperties: false,
  properties: {
    type: { const: 'redrive.alerts' },
    at: { type: 'integer' },
    server: { type: 'string', format: 'uri' },
    alerts: { type: 'array', minItems: 1, maxItems: 100, items: alert },
  },
}
