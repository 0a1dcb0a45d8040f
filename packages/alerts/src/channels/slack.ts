import { Problems } from '@redrive/sinks/internal'
import {
  type AlertChannel,
  type ChannelOptions,
  checkAllow,
  httpChannel,
  JSON_TYPE,
} from '../channel.ts'
import { type AlertNotice, cut, headlineOf, shownFacts, titleOf } from '../notice.ts'

export interface SlackOptions extends ChannelOptions {
  /** URL of an incoming webhook. It is a secret. */
  readonly url: string
  /** Allows http. Default `false`: the URL and the alerts would be readable in transit. */
  readonly allowHttp?: boolean
}

/** 20: each alert has two blocks, and Slack accepts 50. */
const BATCH = 20
/** Limits of Slack: https://docs.slack.dev/reference/block-kit/blocks/section-block */
const TEXT_MAX = 3_000
const FIELDS_MAX = 10
/** Escapes of `&` make a text up to five times longer than its characters. */
const FIELD_MAX = 380

/** Creates a channel that posts to an incoming webhook of Slack. */
export function slack(options: SlackOptions): AlertChannel {
  const problems = new Problems()
  const protocols = options.allowHttp === true ? ['https:', 'http:'] : ['https:']
  const url = problems.url('url', options.url, ['SLACK_WEBHOOK_URL'], protocols)
  checkAllow(problems, options.allow)
  problems.refuse('slack()')
  return httpChannel({
    ...options,
    kind: 'slack',
    url,
    address: options.url,
    batch: BATCH,
    secrets: [options.url, url.pathname],
    request: (notices) => ({ headers: JSON_TYPE, body: JSON.stringify(messageOf(notices)) }),
  })
}

const messageOf = (notices: readonly AlertNotice[]) => ({
  text: escaped(cut(`Redrive: ${headlineOf(notices)}`, FIELD_MAX)),
  blocks: notices.flatMap(blocksOf),
})

function blocksOf(notice: AlertNotice) {
  const fields = shownFacts(notice).slice(0, FIELDS_MAX)
  return [
    {
      type: 'section',
      text: markdown(`*${escaped(cut(titleOf(notice), TEXT_MAX / 6))}*`),
      fields: fields.map(([label, value]) =>
        markdown(`*${label}*\n${escaped(cut(value, FIELD_MAX))}`),
      ),
    },
    { type: 'context', elements: [markdown(footOf(notice))] },
  ]
}

function footOf({ kind, link, runbook }: AlertNotice): string {
  const links = [
    ...(link === undefined ? [] : [`<${escaped(link)}|Open in Redrive>`]),
    ...(runbook === undefined ? [] : [`<${escaped(runbook)}|Runbook>`]),
  ]
  return [`\`${escaped(kind)}\``, ...links].join(' · ')
}

/** `verbatim`: Slack links no names and channels in the text. */
const markdown = (text: string) => ({ type: 'mrkdwn', text, verbatim: true })

/** Slack reads `<!channel>` and links in these characters. */
const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
