import { z } from 'zod'
import { secret, secretUrl } from './values.ts'

const WEBHOOK_SECRET = /^whsec_[\w+/]{32,86}={0,2}$/

/** The URL and the key of a webhook. */
export const webhookFields = {
  url: secretUrl(['https:']).describe(
    'https URL. Private addresses are rejected, except those in allowPrivate',
  ),
  secret: secret()
    .refine((one) => WEBHOOK_SECRET.test(one.reveal()), {
      error:
        'expected whsec_ and 24 to 64 bytes as base64. Create one: echo whsec_$(openssl rand -base64 32)',
    })
    .describe('Key that signs requests (Standard Webhooks): whsec_ and base64'),
}

export const webhookTarget = z.strictObject(webhookFields)
