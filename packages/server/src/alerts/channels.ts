import {
  type AlertChannel,
  email,
  pagerDuty,
  sentryAlerts,
  slack,
  webhookAlerts,
} from '@redrive/alerts'
import type { Config } from '../config/schema.ts'
import { omitUndefined } from '../omit-undefined.ts'

/** A channel, with its place in the config: `alerts.slack[0]`. */
export interface ConfiguredChannel {
  readonly path: string
  readonly channel: AlertChannel
}

/** Opens the channels of the config. They reach public addresses and those in `allowPrivate`. */
export function channelsOf(
  { alerts }: Pick<Config, 'alerts'>,
  server: string,
): readonly ConfiguredChannel[] {
  const common = omitUndefined({ allow: alerts.allowPrivate })
  const lists: Readonly<Record<string, readonly AlertChannel[]>> = {
    webhooks: alerts.webhooks.map(({ url, secret }) =>
      webhookAlerts({ ...common, url: url.reveal(), secret: secret.reveal(), server }),
    ),
    slack: alerts.slack.map(({ url }) => slack({ ...common, url: url.reveal() })),
    pagerduty: alerts.pagerduty.map(({ routingKey, url }) =>
      pagerDuty({
        ...common,
        routingKey: routingKey.reveal(),
        ...omitUndefined({ url: url?.reveal() }),
      }),
    ),
    sentry: alerts.sentry.map(({ dsn, ...rest }) =>
      sentryAlerts({ ...common, ...omitUndefined(rest), dsn: dsn.reveal() }),
    ),
    email: alerts.email.map(({ url, ...rest }) =>
      email({ ...common, ...omitUndefined(rest), url: url.reveal() }),
    ),
  }
  return Object.entries(lists).flatMap(([kind, all]) =>
    all.map((channel, place) => ({ path: `alerts.${kind}[${place}]`, channel })),
  )
}
