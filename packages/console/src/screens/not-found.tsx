import { Link } from '@tanstack/react-router'
import { lookOf } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { Empty } from '../components/feedback.tsx'
import { Page } from '../shell/page.tsx'

/** An address without a page, or a resource that the caller may not view. */
export const NotFound = () => (
  <Page title="Not found" isHeading>
    <Card>
      <Empty
        title="Not found, or no permission to view it."
        action={
          <Link to="/" {...lookOf({ size: 'small' })}>
            Open the overview
          </Link>
        }
      />
    </Card>
  </Page>
)
