import { createHash } from 'node:crypto'
import type { OutboundEvent } from '@redrive/runtime'
import { webhook } from '@redrive/sinks'
import { Problems } from '@redrive/sinks/internal'
import { type AlertChannel, type ChannelOptions, checkAllow } from '../channel.ts'
import type { AlertNotice } from '../notice.ts'

export interface WebhookAlertOptions extends ChannelOptions {
  /** https URL. */
  readonly url: string
  /** The secret of the signatures, as for `webhook` of `@redrive/sinks`: `whsec_` and 24 to 64 bytes in base64. */
  readonly secret: string
  /** URL of the sender in the body. Default: none. */
  readonly server?: string
  /** Allows http. Default `false`: alerts and signatures would be readable in transit. */
  readonly allowHttp?: boolean
}

/** 100 alerts in one request. More usually have one cause. The rest follows in the next request. */
const BATCH = 100

/** Creates a channel that posts alerts as signed JSON (Standard Webhooks). */
export function webhookAlerts({ server, ...options }: WebhookAlertOptions): AlertChannel {
  const problems = new Problems()
  const protocols = options.allowHttp === true ? ['https:', 'http:'] : ['https:']
  const url = problems.url('url', options.url, ['WEBHOOK_URL'], protocols)
  checkAllow(problems, options.allow)
  problems.refuse('webhookAlerts()')
  const { name = `webhook ${url.host}` } = options
  // The sink rejects a private address. It is created for each delivery, so that one address does not stop the start.
  const open = () => webhook({ ...options, name })
  return {
    name,
    address: addressOf(url),
    batch: BATCH,
    preview: (notices) => JSON.stringify(bodyOf(notices, server), undefined, 2),
    async send(notices, { signal }) {
      const sink = open()
      try {
        await sink.send([eventOf(notices, server)], { signal })
      } finally {
        await sink.close()
      }
    },
    async close() {},
  }
}

/** Returns the URL without its user and password, which change in a rotation. */
function addressOf(url: URL): string {
  const address = new URL(url)
  address.username = ''
  address.password = ''
  return address.href
}

const bodyOf = (notices: readonly AlertNotice[], server: string | undefined) => ({
  type: 'redrive.alerts',
  at: Date.now(),
  server,
  alerts: notices.map(({ facts, ...notice }) => ({ ...facts, ...notice })),
})

function eventOf(notices: readonly AlertNotice[], server: string | undefined): OutboundEvent {
  const body = bodyOf(notices, server)
  // The same for the same alerts, so that a receiver can detect a repeated delivery.
  const ids = notices.map(({ id, status }) => (status === 'firing' ? id : `${id} ${status}`)).sort()
  const id = createHash('sha256').update(ids.join()).digest('hex').slice(0, 32)
  const bytes = Buffer.from(JSON.stringify(body))
  const { type, at } = body
  return {
    id,
    key: id,
    type,
    lane: undefined,
    at,
    bytes,
    contentType: 'application/json',
    headers: {},
  }
}
