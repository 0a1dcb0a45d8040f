import { useState } from 'react'
import { Button } from '../../components/button.tsx'
import { Time } from '../../components/time.tsx'
import { useMe } from '../../data/me.ts'
import type { Session, Token } from '../../data/settings.ts'
import type { Person } from '../../words/access.ts'
import { RevokeAccessDialog } from './revoke-access.tsx'
import { Expiry, RevokeTokenDialog, TokenName } from './tokens.tsx'

/** The sessions and tokens of a person. Each can be revoked alone. */
export function PersonAccess({ person }: { readonly person: Person }) {
  const me = useMe()
  const [session, setSession] = useState<Session>()
  const [token, setToken] = useState<Token>()
  return (
    <>
      <ul className="person-access">
        {person.sessions.map((one) => (
          <li key={one.id}>
            <b>Session</b>
            <span className="quiet small">
              since <Time at={one.createdAt} />, last request <Time at={one.lastUsedAt} isAgo />
            </span>
            <span className="grow" />
            <Button size="small" onClick={() => setSession(one)}>
              End session…
            </Button>
          </li>
        ))}
        {person.tokens.map((one) => (
          <li key={one.id}>
            <TokenName token={one} />
            <span className="quiet small">
              token, {one.grants.flatMap(({ actions }) => actions).join(', ')} on{' '}
              {one.grants.flatMap(({ sources }) => sources).join(', ')}; expires{' '}
              <Expiry token={one} />
              {one.lastUsedAt === undefined ? (
                '; never used'
              ) : (
                <>
                  ; used <Time at={one.lastUsedAt} isAgo />
                </>
              )}
            </span>
            <span className="grow" />
            <Button size="small" onClick={() => setToken(one)}>
              Revoke…<span className="visually-hidden"> {one.name}</span>
            </Button>
          </li>
        ))}
      </ul>
      {session === undefined ? null : (
        <RevokeAccessDialog
          name={session.name}
          sessions={[session]}
          tokens={[]}
          isOwn={session.person === me.person}
          onClose={() => setSession(undefined)}
        />
      )}
      {token === undefined ? null : (
        <RevokeTokenDialog token={token} onClose={() => setToken(undefined)} />
      )}
    </>
  )
}
