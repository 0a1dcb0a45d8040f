import { createHash } from 'node:crypto'
import { Problems } from '@redrive/sinks/internal'
import {
  type AlertChannel,
  type ChannelOptions,
  checkAllow,
  httpChannel,
  JSON_TYPE,
} from '../channel.ts'
import { type AlertNotice, cut, oneLine } from '../notice.ts'

export interface PagerDutyOptions extends ChannelOptions {
  /** Integration key of a service with the integration "Events API v2". It is a secret. */
  readonly routingKey: string
  /** URL of the Events API. Default: https://events.pagerduty.com/v2/enqueue. In Europe: events.eu.pagerduty.com. */
  readonly url?: string
  /** Allows http. Default `false`: the key and the alerts would be readable in transit. */
  readonly allowHttp?: boolean
}

const URL_DEFAULT = 'https://events.pagerduty.com/v2/enqueue'
/** Limits of the Events API v2: https://developer.pagerduty.com/docs/send-alert-event */
const SUMMARY_MAX = 1_024
const KEY_MAX = 255

/** Creates a channel that triggers and resolves incidents of PagerDuty (Events API v2). */
export function pagerDuty(options: PagerDutyOptions): AlertChannel {
  const { routingKey, url: address = URL_DEFAULT, allowHttp = false } = options
  const problems = new Problems()
  const url = problems.url('url', address, [], allowHttp ? ['https:', 'http:'] : ['https:'])
  if (!/^\w{32}$/.test(routingKey)) {
    problems.expected('routingKey', routingKey, 'the 32 characters of an integration key', [
      'PAGERDUTY_ROUTING_KEY',
    ])
  }
  checkAllow(problems, options.allow)
  problems.refuse('pagerDuty()')
  return httpChannel({
    ...options,
    kind: 'pagerduty',
    url,
    address: `${address} ${routingKey}`,
    // The API accepts one event in a request.
    batch: 1,
    secrets: [routingKey],
    request: ([notice]) => ({
      headers: JSON_TYPE,
      body: JSON.stringify(notice === undefined ? {} : eventOf(routingKey, notice)),
    }),
  })
}

function eventOf(routingKey: string, notice: AlertNotice) {
  const { key, kind, status, severity, summary, source, startedAt, facts, link, runbook } = notice
  const common = { routing_key: routingKey, dedup_key: dedupKeyOf(key) }
  if (status === 'resolved') return { ...common, event_action: 'resolve' }
  return {
    ...common,
    event_action: 'trigger',
    client: 'Redrive',
    ...(link === undefined ? {} : { client_url: link }),
    payload: {
      summary: cut(oneLine(summary), SUMMARY_MAX),
      source,
      severity,
      timestamp: new Date(startedAt).toISOString(),
      ...(facts.handler === undefined ? {} : { component: facts.handler }),
      group: source,
      class: kind,
      custom_details: facts,
    },
    links: [
      ...(link === undefined ? [] : [{ href: link, text: 'Open in Redrive' }]),
      ...(runbook === undefined ? [] : [{ href: runbook, text: 'Runbook' }]),
    ],
  }
}

/** Returns the same key for the begin and the end of an alert, so that PagerDuty has one incident. */
const dedupKeyOf = (key: string): string =>
  key.length <= KEY_MAX ? key : createHash('sha256').update(key).digest('hex')
