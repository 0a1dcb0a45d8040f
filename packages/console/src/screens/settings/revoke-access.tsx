import { Confirm } from '../../components/dialog.tsx'
import { Peer } from '../../components/peer.tsx'
import { revokeAccess, type Session, type Token } from '../../data/settings.ts'
import { countOf } from '../../words/numbers.ts'
import { useChange } from '../../dialogs/use-change.ts'

export interface RevokeAccessProps {
  readonly name: string
  readonly sessions: readonly Session[]
  readonly tokens: readonly Token[]
  /** Whether it is the access of the caller. */
  readonly isOwn: boolean
  readonly onClose: () => void
}

/** Ends sessions and revokes tokens of a person. */
export function RevokeAccessDialog({ name, sessions, tokens, isOwn, onClose }: RevokeAccessProps) {
  const { run, isBusy, problem } = useChange(onClose)
  const isSession = tokens.length === 0 && sessions.length === 1
  const title = isSession ? `End a session of ${name}` : `Revoke access of ${name}`
  const commands = [
    ...sessions.map(({ id }) => `redrive session revoke ${id}`),
    ...tokens.map(({ id }) => `redrive token revoke ${id}`),
  ]
  return (
    <Confirm
      title={title}
      cancelLabel="Keep"
      confirmLabel={isSession ? 'End session' : 'Revoke access'}
      isDanger
      cli={commands.join(' && ')}
      isBusy={isBusy}
      problem={problem}
      onConfirm={() =>
        run(async (key) => {
          await revokeAccess({ sessions, tokens }, key)
          return isSession ? `Ended a session of ${name}` : `Revoked access of ${name}`
        })
      }
      onClose={onClose}
    >
      <p>
        {isSession
          ? 'The session ends immediately.'
          : `${countOf(sessions.length, 'session')} and ${countOf(tokens.length, 'token')} of `}
        {isSession ? null : (
          <>
            <Peer text={name} most={100} /> end immediately. Tokens cannot be restored.
          </>
        )}{' '}
        The person can sign in again while the provider and the config allow it.
      </p>
      {isOwn ? <p>This is your own access. You may be signed out.</p> : null}
    </Confirm>
  )
}
