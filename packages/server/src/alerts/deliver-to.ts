import type { AlertChannel, AlertNotice } from '@redrive/alerts'
import { deliveryFailureOf, deliverySignal, REJECTIONS_MAX } from '@redrive/alerts/internal'
import type { Alert } from '@redrive/catalog'
import type { RunSql } from '../database.ts'
import { type AlertContent, type DescribeAlert, urgencyOf } from './describe.ts'
import {
  CLAIM,
  RECORD_FAILED,
  RECORD_REJECTED,
  RETURN_CLAIM,
  RETURN_MESSAGE,
  SET_DELIVERED,
  TAKE_MESSAGE,
} from './statements.ts'

export interface DeliveryOptions {
  readonly run: RunSql
  readonly channel: AlertChannel
  /** Identifies the channel in the database. */
  readonly target: string
  readonly describe: DescribeAlert
  readonly perHour: number
  readonly onFailure: (channel: AlertChannel, error: unknown) => void
}

type ActiveAlerts = ReadonlyMap<string, Alert>

interface ClaimedAlert {
  readonly key: string
  readonly id: string
  /** The notification that was delivered when the alert began. */
  readonly content: AlertContent | null
  readonly startedAt: number
  readonly endedAt: number | null
}

/** The deliveries of one call to one channel. */
interface Delivery extends DeliveryOptions {
  readonly active: ActiveAlerts
  /** Whether its messages count for the limit of an hour. */
  readonly isLimited: boolean
}

/** 60 s, half of the time of a claim: the alerts of a rejected message are sent one by one for this time. */
const ONE_BY_ONE_MS = 60_000

/** Delivers what began and ended to one channel. Rejects when the database fails. */
export async function deliverTo(options: DeliveryOptions, active: ActiveAlerts): Promise<void> {
  const sorted = [...active].sort(([, a], [, b]) => urgencyOf(a) - urgencyOf(b))
  const keys = sorted.map(([key]) => key)
  const critical = sorted.filter(([, alert]) => urgencyOf(alert) === 0).map(([key]) => key)
  // Ends and critical alerts first: they are not limited.
  const isOpen = await deliverClaimed({ ...options, active, isLimited: false }, critical)
  if (isOpen) await deliverClaimed({ ...options, active, isLimited: true }, keys)
}

/** Delivers alerts with these keys, and ends. Returns whether the channel accepts messages. */
async function deliverClaimed(delivery: Delivery, keys: readonly string[]): Promise<boolean> {
  const { run, target, channel } = delivery
  for (;;) {
    const rows = await run<ClaimedAlert>(CLAIM, [target, keys, channel.batch])
    if (rows.length === 0) return true
    if (!(await deliver(delivery, rows))) return false
  }
}

/** Delivers one message within the limit. Returns whether the next message can be delivered now. */
async function deliver(delivery: Delivery, rows: readonly ClaimedAlert[]): Promise<boolean> {
  const { run, target, isLimited, perHour } = delivery
  if (isLimited) {
    const [isWithinLimit] = await run(TAKE_MESSAGE, [target, perHour])
    if (isWithinLimit === undefined) {
      await returnClaim(delivery, rows)
      return false
    }
  }
  const contents = await contentsOf(delivery, rows)
  try {
    await post(delivery.channel, rows, contents)
  } catch (error) {
    return handleFailure(delivery, rows, error)
  }
  const texts = contents.map((one) => JSON.stringify(one))
  await run(SET_DELIVERED, [target, rows.map(({ id }) => id), rows.map(hasEnded), texts])
  return true
}

/** Returns whether the next message can be delivered now. */
async function handleFailure(
  delivery: Delivery,
  rows: readonly ClaimedAlert[],
  error: unknown,
): Promise<boolean> {
  const { run, target, channel, isLimited, onFailure } = delivery
  const failure = deliveryFailureOf(error)
  // The channel may have accepted a message with an unknown outcome, so it counts for the limit.
  if (isLimited && failure !== 'unknown') await run(RETURN_MESSAGE, [target])
  if (failure === 'rejected') return deliverRejected(delivery, rows, error)
  const ids = rows.map(({ id }) => id)
  await run(RECORD_FAILED, [target, ids, failure === 'unknown'])
  onFailure(channel, error)
  return false
}

/** Finds the alert that the channel rejects: sends each one alone, and gives it up after some rejections. */
async function deliverRejected(
  delivery: Delivery,
  rows: readonly ClaimedAlert[],
  error: unknown,
): Promise<boolean> {
  const { run, target, channel, onFailure } = delivery
  const [only] = rows
  if (only !== undefined && rows.length === 1) {
    const parameters = [target, only.id, hasEnded(only), REJECTIONS_MAX]
    const [state] = await run<{ readonly isGivenUp: boolean }>(RECORD_REJECTED, parameters)
    onFailure(channel, state?.isGivenUp === true ? givenUp(only, error) : error)
    return true
  }
  const endsAt = performance.now() + ONE_BY_ONE_MS
  for (const [place, row] of rows.entries()) {
    if (performance.now() < endsAt && (await deliver(delivery, [row]))) continue
    await returnClaim(delivery, rows.slice(place + 1))
    return false
  }
  return true
}

const givenUp = ({ key }: ClaimedAlert, cause: unknown) =>
  new Error(`Gave up the alert ${key}, rejected ${REJECTIONS_MAX} times: ${String(cause)}`, {
    cause,
  })

const returnClaim = ({ run, target }: Delivery, rows: readonly ClaimedAlert[]) =>
  run(RETURN_CLAIM, [target, rows.map(({ id }) => id)])

async function contentsOf(
  delivery: Delivery,
  rows: readonly ClaimedAlert[],
): Promise<readonly AlertContent[]> {
  const { active, describe } = delivery
  try {
    return await Promise.all(
      rows.map(async ({ key, content, endedAt }) =>
        endedAt !== null && content !== null ? content : describe(active.get(key) as Alert),
      ),
    )
  } catch (error) {
    await returnClaim(delivery, rows)
    throw error
  }
}

async function post(
  channel: AlertChannel,
  rows: readonly ClaimedAlert[],
  contents: readonly AlertContent[],
): Promise<void> {
  const notices = rows.map((row, place) => noticeOf(row, contents[place] as AlertContent))
  await channel.send(notices, { signal: deliverySignal(channel) })
}

const hasEnded = ({ endedAt }: ClaimedAlert) => endedAt !== null

function noticeOf(row: ClaimedAlert, content: AlertContent): AlertNotice {
  const { id, startedAt, endedAt } = row
  const status = hasEnded(row) ? 'resolved' : 'firing'
  const [begin, at] = [startedAt, endedAt ?? startedAt].map(Math.round) as [number, number]
  return { ...content, id, status, startedAt: begin, at }
}
