import { refusal } from '../../data/permissions.ts'
import type { Me } from '../../data/queries.ts'
import type { SetAsideAction, SetAsideMessage } from '../../data/sources.ts'

interface Action {
  readonly action: SetAsideAction
  readonly label: string
  /** The verb before a number of messages. */
  readonly bulk: string
  readonly needs: 'replay' | 'approve' | 'discard'
  /** The statuses that allow it. */
  readonly from: readonly SetAsideMessage['status'][]
}

// biome-ignore format: one row per action
const ACTIONS: readonly Action[] = [
  { action: 'replay', label: 'Request replay…', bulk: 'Request replay of', needs: 'replay', from: ['open'] },
  { action: 'approve', label: 'Approve replay…', bulk: 'Approve replay of', needs: 'approve', from: ['requested'] },
  { action: 'reopen', label: 'Withdraw request…', bulk: 'Withdraw', needs: 'discard', from: ['requested'] },
  { action: 'reopen', label: 'Reopen…', bulk: 'Reopen', needs: 'discard', from: ['discarded'] },
  { action: 'discard', label: 'Discard…', bulk: 'Discard', needs: 'discard', from: ['open', 'requested'] },
]

export interface PossibleAction extends Action {
  /** Why the caller cannot do it. */
  readonly refusal: string | undefined
}

/** Whether the caller requested the replay. Another person approves it. */
export const isOwnRequest = (message: SetAsideMessage, { person }: Pick<Me, 'person'>): boolean =>
  message.status === 'requested' && message.requestedBy === person

/** Returns the actions that the status of a message allows. The API refuses to approve an own request. */
export const actionsOf = (
  message: SetAsideMessage,
  me: Pick<Me, 'grants' | 'person'>,
): readonly PossibleAction[] =>
  ACTIONS.filter(({ from }) => from.includes(message.status))
    .filter(({ action }) => action !== 'approve' || !isOwnRequest(message, me))
    // An incomplete message has only the start of its body, so the server cannot publish it.
    .filter(({ action }) => message.isComplete || (action !== 'replay' && action !== 'approve'))
    .map((one) => ({ ...one, refusal: refusal(me, one.needs, message.source) }))
