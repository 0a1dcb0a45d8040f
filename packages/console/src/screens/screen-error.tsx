import { type ErrorComponentProps, Link } from '@tanstack/react-router'
import { Button, lookOf } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { Empty } from '../components/feedback.tsx'
import { Peer } from '../components/peer.tsx'
import { Page } from '../shell/page.tsx'

/** Replaces a screen that throws, or whose script cannot be loaded. The shell around it still works. */
export const ScreenError = ({ error }: ErrorComponentProps<unknown>) => (
  <Page title="Error" isHeading>
    <Card>
      <div role="alert">
        <Empty
          title="This page cannot be shown."
          action={
            <span className="row">
              <Button size="small" kind="primary" onClick={() => location.reload()}>
                Reload
              </Button>
              <Link to="/" {...lookOf({ size: 'small' })}>
                Open the overview
              </Link>
            </span>
          }
        >
          <p>Reload it. If the error returns, send this text to your administrator:</p>
          <code>
            <Peer text={error instanceof Error ? error.message : String(error)} most={500} />
          </code>
        </Empty>
      </div>
    </Card>
  </Page>
)
