import { createHash } from 'node:crypto'
import { parseDsn, Problems } from '@redrive/sinks/internal'
import { type AlertChannel, type ChannelOptions, checkAllow, httpChannel } from '../channel.ts'
import { type AlertNotice, cut, titleOf } from '../notice.ts'

export interface SentryAlertOptions extends ChannelOptions {
  /** DSN of the project. It is a secret. */
  readonly dsn: string
  /** Environment of the issues. Default: none. */
  readonly environment?: string
  /** Allows http. Default `false`: the key and the alerts would be readable in transit. */
  readonly allowHttp?: boolean
}

/** Limits of Sentry: https://develop.sentry.dev/sdk/data-model/event-payloads/ */
const TAG_MAX = 200
const TITLE_MAX = 8_192

const LEVELS = { warning: 'warning', critical: 'error' } as const

/**
 * Creates a channel that sends alerts to Sentry, or a service with the same protocol. An alert is one issue,
 * because its key is the fingerprint. Clients cannot resolve issues: an ended alert is an event of the level `info`.
 */
export function sentryAlerts(options: SentryAlertOptions): AlertChannel {
  const problems = new Problems()
  const { publicKey, secretKey, envelopeUrl } = parseDsn(options.dsn, problems)
  if (envelopeUrl.protocol === 'http:' && options.allowHttp !== true) {
    problems.add('dsn: expected https://, got http://')
  }
  checkAllow(problems, options.allow)
  problems.refuse('sentryAlerts()')
  const secret = secretKey === '' ? '' : `, sentry_secret=${secretKey}`
  const auth = `Sentry sentry_version=7, sentry_client=redrive, sentry_key=${publicKey}${secret}`
  return httpChannel({
    ...options,
    kind: 'sentry',
    url: envelopeUrl,
    // Without the key, which changes in a rotation.
    address: envelopeUrl.href,
    // An envelope may have one event.
    batch: 1,
    secrets: [publicKey, secretKey],
    headers: { 'x-sentry-auth': auth },
    request: ([notice]) => ({
      headers: { 'content-type': 'application/x-sentry-envelope' },
      body: notice === undefined ? '{}\n' : envelopeOf(notice, options.environment),
    }),
  })
}

/** Returns header, item header and item, one line each. */
function envelopeOf(notice: AlertNotice, environment: string | undefined): string {
  const eventId = idOf(notice)
  const payload = JSON.stringify(eventOf(notice, eventId, environment))
  const length = Buffer.byteLength(payload)
  const header = JSON.stringify({ event_id: eventId, sent_at: new Date().toISOString() })
  const item = JSON.stringify({ type: 'event', content_type: 'application/json', length })
  return `${header}\n${item}\n${payload}\n`
}

function eventOf(notice: AlertNotice, eventId: string, environment: string | undefined) {
  const { key, kind, status, severity, source, at, facts, link, runbook } = notice
  const tags = { kind, status, source, handler: facts.handler, class: facts.class }
  return {
    event_id: eventId,
    timestamp: at / 1_000,
    platform: 'other',
    level: status === 'resolved' ? 'info' : LEVELS[severity],
    logger: 'redrive.alerts',
    logentry: { formatted: cut(titleOf(notice), TITLE_MAX) },
    fingerprint: ['redrive', key],
    ...(environment === undefined ? {} : { environment }),
    tags: Object.fromEntries(
      Object.entries(tags).flatMap(([name, value]) =>
        value === undefined
          ? []
          : [[`redrive.${name}`, cut(value.replaceAll(/\s/g, ' '), TAG_MAX)]],
      ),
    ),
    extra: { ...facts, link, runbook },
  }
}

/** Returns the same id for a repeated delivery, so that Sentry counts it once. */
const idOf = ({ id, status }: AlertNotice): string =>
  createHash('sha256').update(`${id} ${status}`).digest('hex').slice(0, 32)
