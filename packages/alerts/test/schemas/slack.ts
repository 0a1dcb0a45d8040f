/**
 * A message to an incoming webhook of Slack, with the two blocks that the channel uses.
 * https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
 * https://docs.slack.dev/reference/block-kit/blocks
 */
const text = (maxLength: number) => ({
  type: 'object',
  required: ['type', 'text'],
  additionalProperties: false,
  properties: {
    type: { enum: ['mrkdwn', 'plain_text'] },
    text: { type: 'string', minLength: 1, maxLength },
    emoji: { type: 'boolean' },
    verbatim: { type: 'boolean' },
  },
})

const section = {
  type: 'object',
  required: ['type'],
  anyOf: [{ required: ['text'] }, { required: ['fields'] }],
  additionalProperties: false,
  properties: {
    type: { const: 'section' },
    block_id: { type: 'string', maxLength: 255 },
    expand: { type: 'boolean' },
    text: text(3_000),
    fields: { type: 'array', minItems: 1, maxItems: 10, items: text(2_000) },
  },
}

const context = {
  type: 'object',
  required: ['type', 'elements'],
  additionalProperties: false,
  properties: {
    type: { const: 'context' },
    block_id: { type: 'string', maxLength: 255 },
    elements: { type: 'array', minItems: 1, maxItems: 10, items: text(3_000) },
  },
}

export const SLACK = {
  type: 'object',
  required: ['text'],
  additionalProperties: false,
  properties: {
    text: { type: 'string', minLength: 1, maxLength: 40_000 },
    blocks: { type: 'array', maxItems: 50, items: { oneOf: [section, context] } },
  },
}
