/**
 * An event of Sentry, with the attributes that the channel uses, and the headers of an envelope.
 * https://develop.sentry.dev/sdk/data-model/event-payloads/
 * https://develop.sentry.dev/sdk/data-model/envelopes/
 */
const eventId = { type: 'string', pattern: '^[0-9a-f]{32}$' }

export const SENTRY_EVENT = {
  type: 'object',
  required: ['event_id', 'timestamp', 'platform'],
  additionalProperties: false,
  properties: {
    event_id: eventId,
    timestamp: { type: 'number', exclusiveMinimum: 1e9 },
    platform: { enum: ['javascript', 'node', 'other'] },
    level: { enum: ['fatal', 'error', 'warning', 'info', 'debug'] },
    logger: { type: 'string' },
    environment: { type: 'string', maxLength: 64, pattern: '^[^\\s/]+$' },
    logentry: {
      type: 'object',
      required: ['formatted'],
      additionalProperties: false,
      properties: { formatted: { type: 'string', maxLength: 8_192 } },
    },
    fingerprint: { type: 'array', items: { type: 'string' } },
    tags: {
      type: 'object',
      propertyNames: { pattern: '^[a-zA-Z0-9_.:-]{1,32}$' },
      additionalProperties: { type: 'string', maxLength: 200, pattern: '^[^\\n]*$' },
    },
    extra: { type: 'object' },
  },
}

export const SENTRY_HEADER = {
  type: 'object',
  required: ['event_id', 'sent_at'],
  properties: { event_id: eventId, sent_at: { type: 'string', format: 'date-time' } },
}

export const SENTRY_ITEM = {
  type: 'object',
  required: ['type', 'length'],
  properties: {
    type: { const: 'event' },
    length: { type: 'integer', minimum: 1 },
    content_type: { const: 'application/json' },
  },
}
