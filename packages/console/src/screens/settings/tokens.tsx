import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useNow } from '../../clock.ts'
import { Button } from '../../components/button.tsx'
import { Card, CardBody } from '../../components/card.tsx'
import { Command, Equivalents } from '../../components/command.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { Empty, LoadError, Skeleton } from '../../components/feedback.tsx'
import { Note } from '../../components/note.tsx'
import { Peer } from '../../components/peer.tsx'
import { Tag } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { type NewToken, revokeToken, type Token, tokensQuery } from '../../data/settings.ts'
import { expiresSoon } from '../../words/access.ts'
import { apiText } from '../../words/equivalents.ts'
import { countText } from '../../words/numbers.ts'
import { durationText } from '../../words/times.ts'
import { useChange } from '../../dialogs/use-change.ts'
import { NewTokenForm } from './new-token.tsx'
import { SettingsPage } from './settings-page.tsx'
import '../../components/table.css'

/** API tokens of the caller. The secret of a new one is shown once. */
export function Tokens() {
  const tokens = useQuery(tokensQuery)
  const [created, setCreated] = useState<NewToken>()
  const [revoking, setRevoking] = useState<Token>()
  return (
    <SettingsPage tab="tokens">
      <div className="columns">
        <div className="stack">
          {created === undefined ? null : <Secret token={created} />}
          <Card
            title="Your tokens"
            {...(tokens.data === undefined ? {} : { note: countText(tokens.data.length) })}
            action={
              <span className="faint small only-wide">
                A token never has more permissions than its owner
              </span>
            }
          >
            {tokens.data === undefined ? (
              tokens.error === null ? (
                <Skeleton />
              ) : (
                <LoadError
                  what="tokens"
                  error={tokens.error}
                  onRetry={() => void tokens.refetch()}
                />
              )
            ) : tokens.data.length === 0 ? (
              <Empty title="You have no token.">Programs and the command line need one.</Empty>
            ) : (
              <TokenTable tokens={tokens.data} onRevoke={setRevoking} />
            )}
          </Card>
          <Card title="Command line">
            <CardBody>
              <Equivalents cli="redrive token list" api={apiText('GET /api/v1/tokens')} />
            </CardBody>
          </Card>
        </div>
        <NewTokenForm onCreated={setCreated} />
      </div>
      {revoking === undefined ? null : (
        <RevokeTokenDialog token={revoking} onClose={() => setRevoking(undefined)} />
      )}
    </SettingsPage>
  )
}

const Secret = ({ token: { name, secret } }: { readonly token: NewToken }) => (
  <Note tone="good" shape="done" role="status">
    <b>Token {name} created.</b> Copy it now. Redrive stores only its hash and cannot show it again.
    <div className="settings-secret">
      <Command text={secret} label="Copy the token" />
    </div>
  </Note>
)

interface TokenTableProps {
  readonly tokens: readonly Token[]
  readonly onRevoke: (token: Token) => void
}

const TokenTable = ({ tokens, onRevoke }: TokenTableProps) => (
  <table className="table">
    <thead>
      <tr>
        <th scope="col">Name</th>
        <th scope="col" className="only-wide">
          Permissions
        </th>
        <th scope="col" className="only-wide">
          Sources
        </th>
        <th scope="col" className="num">
          Expires
        </th>
        <th scope="col" className="num only-wide">
          Last used
        </th>
        <th scope="col">
          <span className="visually-hidden">Actions</span>
        </th>
      </tr>
    </thead>
    <tbody>
      {tokens.map((token) => (
        <tr key={token.id}>
          <td>
            <TokenName token={token} />
          </td>
          <td className="quiet only-wide">{actionsOf(token)}</td>
          <td className="quiet mono only-wide">{sourcesOf(token)}</td>
          <td className="num">
            <Expiry token={token} />
          </td>
          <td className="num quiet only-wide">
            {token.lastUsedAt === undefined ? 'never' : <Time at={token.lastUsedAt} />}
          </td>
          <td className="num">
            <Button size="small" onClick={() => onRevoke(token)}>
              Revoke…<span className="visually-hidden"> {token.name}</span>
            </Button>
          </td>
        </tr>
      ))}
    </tbody>
  </table>
)

export const TokenName = ({ token: { name, isAgent } }: { readonly token: Token }) => (
  <span className="row">
    <b className="cut">
      <Peer text={name} most={100} />
    </b>
    {isAgent ? <Tag text="agent" tone="warn" /> : null}
  </span>
)

const actionsOf = ({ grants }: Token) => grants.flatMap(({ actions }) => actions).join(', ')
const sourcesOf = ({ grants }: Token) => grants.flatMap(({ sources }) => sources).join(', ')

export function Expiry({ token }: { readonly token: Token }) {
  const now = useNow()
  const isSoon = expiresSoon(token, now)
  const text = token.expiresAt < now ? 'expired' : `in ${durationText(token.expiresAt - now)}`
  return (
    <span
      className={isSoon ? 'settings-soon nowrap' : 'quiet nowrap'}
      title={new Date(token.expiresAt).toISOString()}
    >
      {text}
    </span>
  )
}

interface RevokeTokenDialogProps {
  readonly token: Token
  readonly onClose: () => void
}

export function RevokeTokenDialog({ token, onClose }: RevokeTokenDialogProps) {
  const { run, isBusy, problem } = useChange(onClose)
  return (
    <Confirm
      title={`Revoke token ${token.name}`}
      cancelLabel="Keep"
      confirmLabel="Revoke token"
      isDanger
      cli={`redrive token revoke ${token.id}`}
      isBusy={isBusy}
      problem={problem}
      onConfirm={() =>
        run(async (key) => {
          await revokeToken(token.id, key)
          return `Revoked token ${token.name}`
        })
      }
      onClose={onClose}
    >
      <p>The server rejects its next request. This cannot be undone.</p>
    </Confirm>
  )
}
