/**
 * An event of the Events API v2 of PagerDuty.
 * https://developer.pagerduty.com/docs/send-alert-event
 */
const payload = {
  type: 'object',
  required: ['summary', 'source', 'severity'],
  additionalProperties: false,
  properties: {
    summary: { type: 'string', minLength: 1, maxLength: 1_024 },
    source: { type: 'string', minLength: 1 },
    severity: { enum: ['critical', 'warning', 'error', 'info'] },
    timestamp: { type: 'string', format: 'date-time' },
    component: { type: 'string' },
    group: { type: 'string' },
    class: { type: 'string' },
    custom_details: { type: 'object' },
  },
}

const link = {
  type: 'object',
  required: ['href'],
  additionalProperties: false,
  properties: { href: { type: 'string', format: 'uri' }, text: { type: 'string' } },
}

export const PAGERDUTY = {
  type: 'object',
  required: ['routing_key', 'event_action'],
  additionalProperties: false,
  properties: {
    routing_key: { type: 'string', minLength: 32, maxLength: 32 },
    event_action: { enum: ['trigger', 'acknowledge', 'resolve'] },
    dedup_key: { type: 'string', minLength: 1, maxLength: 255 },
    payload,
    client: { type: 'string' },
    client_url: { type: 'string', format: 'uri' },
    links: { type: 'array', items: link },
    images: { type: 'array' },
  },
  anyOf: [
    { properties: { event_action: { const: 'trigger' } }, required: ['payload'] },
    {
      properties: { event_action: { enum: ['acknowledge', 'resolve'] } },
      required: ['dedup_key'],
    },
  ],
}
