import type { Run } from '@redrive/api'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { Button } from '../../components/button.tsx'
import { Card } from '../../components/card.tsx'
import { Empty, LoadError, problemOf, Skeleton } from '../../components/feedback.tsx'
import { Peer } from '../../components/peer.tsx'
import { Status } from '../../components/status.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { Time } from '../../components/time.tsx'
import { toast } from '../../components/toast.tsx'
import { useLiveQuery } from '../../data/live.ts'
import { useMe } from '../../data/me.ts'
import { can } from '../../data/permissions.ts'
import { ITEMS_PAGE, itemsQuery, messageIds, type RunItems as Items } from '../../data/runs.ts'
import { messagePath } from '../../paths.ts'
import { gateText } from '../../words/gates.ts'
import { ITEM_TABS, type ItemTab } from '../../address-values.ts'
import { firstTab, TAB_STATES, tabCount } from '../../words/item-tabs.ts'
import { countText } from '../../words/numbers.ts'
import { itemStatus, itemText } from '../../words/runs.ts'
import { OutcomeDialog } from '../message/outcome-dialog.tsx'
import '../../components/table.css'

const NAMES: Readonly<Record<ItemTab, string>> = {
  refailed: 'Refailed',
  unknown: 'No confirmation',
  skipped: 'Skipped',
  resolved: 'Resolved',
  all: 'All',
}

/** The messages of a run by outcome. The address has the tab and the page. */
export function RunItems({ run }: { readonly run: Run }) {
  const me = useMe()
  const navigate = useNavigate({ from: '/replays/$id' })
  const { items: tab = firstTab(run), after = '-1' } = useSearch({ from: '/replays/$id' })
  const found = useLiveQuery(itemsQuery(run.id, TAB_STATES[tab], Number(after)), 5_000)
  const open = (next: ItemTab, position?: number) =>
    void navigate({
      search: position === undefined ? { items: next } : { items: next, after: String(position) },
      replace: true,
    })
  const rows = found.data ?? []
  const last = rows.at(-1)?.position
  return (
    <Card
      footer={
        rows.length === ITEMS_PAGE || after !== '-1' ? (
          <>
            <span className="grow" />
            {after === '-1' ? null : (
              <Button size="small" onClick={() => open(tab)}>
                First page
              </Button>
            )}
            {rows.length === ITEMS_PAGE ? (
              <Button size="small" onClick={() => open(tab, last)}>
                Next {countText(ITEMS_PAGE)}
              </Button>
            ) : null}
          </>
        ) : undefined
      }
    >
      <div className="run-tabs">
        <Tabs
          label="Messages by outcome"
          tabs={ITEM_TABS.map((name) => ({
            name,
            label: NAMES[name],
            count: countText(tabCount(run, name)),
          }))}
          current={tab}
          onChange={open}
        >
          {can(me, 'replay', run.source) && run.counts.unknown + run.counts.not_returned > 0 ? (
            <SetOutcomes run={run} />
          ) : null}
        </Tabs>
      </div>
      {found.data === undefined ? (
        found.error === null ? (
          <Skeleton rows={4} />
        ) : (
          <LoadError what="the messages" error={found.error} onRetry={() => void found.refetch()} />
        )
      ) : rows.length === 0 ? (
        <Empty title={tab === 'all' ? 'No message.' : `No message: ${NAMES[tab].toLowerCase()}.`} />
      ) : (
        <ItemTable items={rows} />
      )}
    </Card>
  )
}

const ItemTable = ({ items }: { readonly items: Items }) => (
  <table className="table">
    <thead>
      <tr>
        <th scope="col" className="num run-place only-wide">
          Place
        </th>
        <th scope="col">Key</th>
        <th scope="col">Outcome</th>
        <th scope="col" className="only-wide">
          What failed
        </th>
        <th scope="col" className="num">
          At
        </th>
      </tr>
    </thead>
    <tbody>
      {items.map(
        ({ position, deadLetter, key, message, state, reason, settledAt, publishedAt }) => {
          const at = settledAt ?? publishedAt
          return (
            <tr key={position}>
              <td className="num faint only-wide">{countText(position + 1)}</td>
              <td className="run-key">
                <Link to={messagePath(deadLetter)} className="link mono cut">
                  <Peer text={key ?? deadLetter.slice(-8)} most={80} />
                </Link>
              </td>
              <td>
                <Status state={itemStatus(state)} text={itemText(state)} />
              </td>
              <td className="run-what only-wide">
                <span className="cut">
                  <Peer
                    text={
                      state === 'skipped' && reason !== undefined
                        ? gateText(reason).title
                        : (message ?? '')
                    }
                    most={300}
                  />
                </span>
              </td>
              <td className="num quiet">{at === undefined ? '–' : <Time at={at} />}</td>
            </tr>
          )
        },
      )}
    </tbody>
  </table>
)

/** Sets the outcome of all messages that nothing confirmed, at most 1,000 at a time. */
function SetOutcomes({ run }: { readonly run: Run }) {
  const [chosen, setChosen] = useState<{ as: 'resolved' | 'open'; ids: readonly string[] }>()
  const choose = (as: 'resolved' | 'open') => {
    messageIds(run.id, TAB_STATES.unknown)
      .then((ids) => setChosen({ as, ids }))
      .catch((error: unknown) => toast({ text: problemOf(error).detail, tone: 'bad' }))
  }
  const count = countText(Math.min(run.counts.unknown + run.counts.not_returned, 1_000))
  return (
    <span className="row only-wide">
      <Button size="small" onClick={() => choose('resolved')}>
        {count} took effect…
      </Button>
      <Button size="small" onClick={() => choose('open')}>
        Reopen {count}…
      </Button>
      {chosen === undefined ? null : (
        <OutcomeDialog as={chosen.as} ids={chosen.ids} onClose={() => setChosen(undefined)} />
      )}
    </span>
  )
}
