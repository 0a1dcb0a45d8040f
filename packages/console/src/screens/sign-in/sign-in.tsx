import { lookOf } from '../../components/button.tsx'
import { Logo } from '../../components/icon.tsx'
import { Note } from '../../components/note.tsx'
import { loginUrl, PAGE } from '../../page-facts.ts'
import './sign-in.css'

/** The page for a caller without a session. */
export function SignIn() {
  return (
    <div className="sign-in">
      <title>Sign in · Redrive</title>
      <div className="sign-in-box">
        <header className="brand">
          <Logo size={24} />
          <span>Redrive</span>
        </header>
        <main className="card sign-in-card">
          <h1>Sign in to {location.host}</h1>
          {PAGE.signIn === '' ? (
            <Note tone="bad" shape="fail">
              Development mode accepts only requests to this machine. Open the console at the
              address that the server logs, such as http://127.0.0.1:8080.
            </Note>
          ) : (
            <>
              <a href={loginUrl()} {...lookOf({ kind: 'primary' })}>
                Continue with {PAGE.signIn}
              </a>
              <p className="small faint">You return to {location.pathname}.</p>
            </>
          )}
        </main>
      </div>
      <footer>Redrive {PAGE.version}</footer>
    </div>
  )
}
