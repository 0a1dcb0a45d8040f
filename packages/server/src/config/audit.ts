import { z } from 'zod'
import { duration, privateTargets, secret, text } from './values.ts'
import { webhookFields } from './webhook.ts'

const exported = z.strictObject({
  file: text(4_096)
    .describe('File to which each entry is appended as a line of JSON. Default: none')
    .optional(),
  webhook: z
    .strictObject({
      ...webhookFields,
      allowPrivate: privateTargets()
        .describe('Private networks and host names that it may use. Default: none')
        .optional(),
    })
    .describe('Webhook that receives the entries as lines of JSON. Default: none')
    .optional(),
})

/** Settings of the audit log. */
export const audit = z.strictObject({
  signingKey: secret()
    .describe('Ed25519 private key (PEM) that signs checkpoints of the audit log. Default: none')
    .optional(),
  checkpointFile: text(4_096)
    .describe('File, outside the database, to which checkpoints are appended. Default: none')
    .optional(),
  checkpointInterval: duration('10s', '1d')
    .describe("Interval between two checkpoints ('10s'–'1d', default '5m')")
    .default('5m'),
  export: exported
    .describe('Where every entry is also written, for example for a SIEM. Default: nowhere')
    .prefault({}),
})
