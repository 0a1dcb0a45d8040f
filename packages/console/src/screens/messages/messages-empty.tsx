import { Button } from '../../components/button.tsx'
import { Card } from '../../components/card.tsx'
import { Empty } from '../../components/feedback.tsx'
import { Time } from '../../components/time.tsx'
import type { MessageRange } from '../../address-values.ts'

export const RANGE_NAMES: Readonly<Record<MessageRange, string>> = {
  '24h': '24 h',
  '7d': '7 days',
  '30d': '30 days',
  '90d': '90 days',
}

interface NoMessagesProps {
  readonly filter: string
  readonly range: MessageRange | undefined
  readonly onClear: () => void
}

/** The filter matches nothing. */
export const NoMessages = ({ filter, range, onClear }: NoMessagesProps) => (
  <Card>
    <Empty
      title={filter === '' ? 'No open message.' : 'No message matches.'}
      action={
        filter === '' ? undefined : (
          <Button size="small" onClick={onClear}>
            Clear the filter
          </Button>
        )
      }
    >
      {range === undefined ? null : `The list has failures of the last ${RANGE_NAMES[range]}. `}
      Without a word such as <code>status:resolved</code>, it has only open messages.
    </Empty>
  </Card>
)

interface NoneSoFarProps {
  /** How far back the server has searched. */
  readonly searchedTo: number | undefined
  readonly isBusy: boolean
  readonly onMore: () => void
}

/** The server searched a part of the range and found nothing in it. */
export const NoneSoFar = ({ searchedTo, isBusy, onMore }: NoneSoFarProps) => (
  <Card>
    <Empty
      title="No message found so far."
      action={
        <Button
          size="small"
          disabledReason={isBusy ? 'The search continues.' : undefined}
          onClick={onMore}
        >
          Continue the search
        </Button>
      }
    >
      {searchedTo === undefined ? null : (
        <>
          Searched back to <Time at={searchedTo} isAgo />. A source or a group in the filter makes
          it faster.
        </>
      )}
    </Empty>
  </Card>
)
