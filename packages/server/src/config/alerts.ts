import { isEmailAddress } from '@redrive/alerts/internal'
import { z } from 'zod'
import {
  duration,
  flag,
  list,
  privateTargets,
  secret,
  secretUrl,
  share,
  text,
  whole,
} from './values.ts'
import { webhookTarget } from './webhook.ts'

/** 20 of each kind: a server for more teams should use one webhook that distributes them. */
const CHANNELS_MAX = 20
const channels = <One extends z.ZodType>(one: One) =>
  z.array(one).max(CHANNELS_MAX, { error: `expected at most ${CHANNELS_MAX}` })

const slack = z.strictObject({
  url: secretUrl(['https:']).describe('URL of an incoming webhook of Slack'),
})

const pagerDuty = z.strictObject({
  routingKey: secret()
    .refine((one) => /^\w{32}$/.test(one.reveal()), {
      error: 'expected the 32 characters of an integration key (Events API v2)',
    })
    .describe('Integration key of a service with the integration "Events API v2"'),
  url: secretUrl(['https:'])
    .describe("URL of the Events API. Default 'https://events.pagerduty.com/v2/enqueue'")
    .optional(),
})

const sentry = z
  .strictObject({
    dsn: secretUrl(['https:', 'http:']).describe('DSN of a project. https, unless allowHttp'),
    environment: text(64).describe('Environment of the issues. Default: none').optional(),
    allowHttp: flag()
      .describe('Allow a DSN with http. Default false: the key would be readable in transit')
      .default(false),
  })
  .refine(({ dsn, allowHttp }) => allowHttp || dsn.reveal().startsWith('https:'), {
    path: ['dsn'],
    error: 'expected a URL that begins with https://, or allowHttp: true',
  })

const ADDRESS = 'expected e-mail addresses, such as "ops@example.com"'

const email = z.strictObject({
  url: secretUrl(['smtps:', 'smtp:']).describe(
    'SMTP server, such as smtps://user:password@mail.example.com. With smtp:// STARTTLS is required',
  ),
  from: text(320).refine(isEmailAddress, { error: ADDRESS }).describe('Address of the sender'),
  to: list('e-mail addresses')
    .refine((all) => all.every(isEmailAddress), { error: ADDRESS })
    .describe('Addresses of the recipients'),
  ca: text(100_000)
    .describe('Certificate of a private authority, PEM. Default: the authorities of Node.js')
    .optional(),
  allowPlain: flag()
    .describe('Send without TLS. Default false: the password would be readable in transit')
    .default(false),
})

/** The thresholds that a source can set, too. */
export const thresholds = {
  depth: whole(1, 1_000_000_000)
    .describe('Alert at this number of open dead letters in a source. Default 100')
    .optional(),
  age: duration('1s', '3650d')
    .describe("Alert at this age of the oldest open dead letter. Default '30m'")
    .optional(),
  dominanceShare: share()
    .describe('Alert when one group has this share of its source (0–1, default 0.5)')
    .optional(),
  dominanceCount: whole(0, 1_000_000_000)
    .describe('Minimum number of dead letters for a dominanceShare alert. Default 10')
    .optional(),
}

export const alerts = z.strictObject({
  webhooks: channels(webhookTarget)
    .describe('Webhooks that receive alerts as signed JSON. Default: none')
    .default([]),
  slack: channels(slack).describe('Channels of Slack. Default: none').default([]),
  pagerduty: channels(pagerDuty).describe('Services of PagerDuty. Default: none').default([]),
  sentry: channels(sentry).describe('Projects of Sentry. Default: none').default([]),
  email: channels(email).describe('E-mail by SMTP. Default: none').default([]),
  allowPrivate: privateTargets()
    .describe(
      'Private networks and host names that channels may use, such as 10.1.2.0/24. Default: none',
    )
    .optional(),
  perHour: whole(1, 10_000)
    .describe(
      'Maximum number of messages with new alerts to one channel in an hour (1–10,000, default 60). Further alerts wait. Critical alerts and ends are not limited',
    )
    .default(60),
  ...thresholds,
})
