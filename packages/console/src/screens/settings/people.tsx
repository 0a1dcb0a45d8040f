import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Fragment, useState } from 'react'
import { Avatar } from '../../components/avatar.tsx'
import { Button } from '../../components/button.tsx'
import { Card, CardBody } from '../../components/card.tsx'
import { Equivalents } from '../../components/command.tsx'
import { Empty, LoadError, Skeleton } from '../../components/feedback.tsx'
import { Icon } from '../../components/icon.tsx'
import { Note } from '../../components/note.tsx'
import { Peer } from '../../components/peer.tsx'
import { Tag } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { useMe } from '../../data/me.ts'
import { canEverywhere, personName } from '../../data/permissions.ts'
import type { Me } from '../../data/queries.ts'
import { accessQuery } from '../../data/settings.ts'
import { useKeys } from '../../keys.ts'
import { PAGE } from '../../page-facts.ts'
import { type Person, peopleOf } from '../../words/access.ts'
import { apiText } from '../../words/equivalents.ts'
import { countOf, countText } from '../../words/numbers.ts'
import { PersonAccess } from './person-access.tsx'
import { RevokeAccessDialog } from './revoke-access.tsx'
import { SettingsPage } from './settings-page.tsx'
import '../../components/table.css'

/** Sessions and tokens of all users, for administrators. The address has the open user. */
export function People() {
  const me = useMe()
  return (
    <SettingsPage tab="people">
      {canEverywhere(me, 'configure') ? (
        <Loaded me={me} />
      ) : (
        <Card>
          <Empty title="Permission configure is required on all sources.">
            Ask an administrator for a role with it.
          </Empty>
        </Card>
      )}
    </SettingsPage>
  )
}

function Loaded({ me }: { readonly me: Me }) {
  const found = useQuery(accessQuery)
  if (found.data === undefined)
    return (
      <Card>
        {found.error === null ? (
          <Skeleton />
        ) : (
          <LoadError what="people" error={found.error} onRetry={() => void found.refetch()} />
        )}
      </Card>
    )
  const people = peopleOf(found.data.sessions, found.data.tokens)
  return (
    <>
      {me.via === 'development' ? (
        <Note tone="idle" shape="unknown">
          Development mode has no sign-in, so there are no sessions. Tokens work.
        </Note>
      ) : null}
      <Card
        title="People with access"
        note={countText(people.length)}
        action={
          <Button size="small" onClick={() => void found.refetch()}>
            Refresh
          </Button>
        }
        footer={
          <span>
            Each view of this page is in the audit log, so it is not live. Roles come from{' '}
            <code>access</code> in the config of the server
            {PAGE.signIn === '' ? '.' : ` and from the groups of ${PAGE.signIn}.`}
          </span>
        }
      >
        {people.length === 0 ? (
          <Empty title="No user has a session or a token." />
        ) : (
          <PeopleTable people={people} me={me} />
        )}
      </Card>
      <Note tone="idle" shape="off">
        Revoking access ends all sessions and tokens of a person immediately. The person can sign in
        again while the provider and the config allow it. Runs in progress continue.
      </Note>
      <Card title="Command line">
        <CardBody>
          <Equivalents cli="redrive session list" api={apiText('GET /api/v1/sessions')} />
        </CardBody>
      </Card>
    </>
  )
}

interface PeopleTableProps {
  readonly people: readonly Person[]
  readonly me: Me
}

const COLUMNS = 5

function PeopleTable({ people, me }: PeopleTableProps) {
  const { person: open } = useSearch({ from: '/settings/people' })
  const navigate = useNavigate({ from: '/settings/people' })
  const [revoking, setRevoking] = useState<Person>()
  const show = (id: string | undefined) =>
    void navigate({ search: id === undefined ? {} : { person: id }, replace: true })
  const at = people.findIndex(({ id }) => id === open)
  const move = (step: number) =>
    show(people[Math.max(0, Math.min(people.length - 1, at + step))]?.id)
  useKeys({
    j: () => move(1),
    k: () => move(at < 0 ? 1 : -1),
    ...(at < 0 ? {} : { Escape: () => show(undefined) }),
  })
  return (
    <>
      <table className="table people-table">
        <thead>
          <tr>
            <th scope="col">Person</th>
            <th scope="col" className="num">
              Sessions
            </th>
            <th scope="col" className="num">
              Tokens
            </th>
            <th scope="col" className="num only-wide">
              Last request
            </th>
            <th scope="col" className="only-wide">
              <span className="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {people.map((person) => (
            <Fragment key={person.id}>
              <Row
                person={person}
                me={me}
                isOpen={person.id === open}
                onOpen={() => show(person.id === open ? undefined : person.id)}
                onRevoke={() => setRevoking(person)}
              />
              {person.id === open ? (
                <tr data-selected="" className="people-detail">
                  <td colSpan={COLUMNS}>
                    <PersonAccess person={person} />
                    <div className="only-narrow people-revoke">
                      <Button onClick={() => setRevoking(person)}>Revoke access…</Button>
                    </div>
                  </td>
                </tr>
              ) : null}
            </Fragment>
          ))}
        </tbody>
      </table>
      {revoking === undefined ? null : (
        <RevokeAccessDialog
          name={nameOf(revoking, me)}
          sessions={revoking.sessions}
          tokens={revoking.tokens}
          isOwn={revoking.id === me.person}
          onClose={() => setRevoking(undefined)}
        />
      )}
    </>
  )
}

const nameOf = ({ id, name }: Person, me: Me): string => name ?? personName(id, me)

interface RowProps {
  readonly person: Person
  readonly me: Me
  readonly isOpen: boolean
  readonly onOpen: () => void
  readonly onRevoke: () => void
}

function Row({ person, me, isOpen, onOpen, onRevoke }: RowProps) {
  const name = nameOf(person, me)
  return (
    <tr data-selected={isOpen ? '' : undefined} data-focused={isOpen ? '' : undefined}>
      <td>
        <button type="button" className="people-open" aria-expanded={isOpen} onClick={onOpen}>
          <Icon name={isOpen ? 'down' : 'right'} className="faint" />
          <Avatar name={name} size="small" />
          <span className="people-name">
            <b className="cut">
              <Peer text={name} most={100} />
            </b>
            <span className="faint small mono cut">
              <Peer text={person.id} most={200} />
            </span>
          </span>
          {person.id === me.person ? <Tag text="you" /> : null}
        </button>
      </td>
      <td className="num">{countText(person.sessions.length)}</td>
      <td className="num">{countText(person.tokens.length)}</td>
      <td className="num quiet only-wide">
        {person.lastUsedAt === undefined ? 'never' : <Time at={person.lastUsedAt} />}
      </td>
      <td className="num only-wide">
        <Button size="small" onClick={onRevoke}>
          Revoke access…
          <span className="visually-hidden">
            {' '}
            of {name}, {countOf(person.sessions.length, 'session')}
          </span>
        </Button>
      </td>
    </tr>
  )
}
