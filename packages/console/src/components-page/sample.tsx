import type { ReactNode } from 'react'
import { Card, CardBody } from '../components/card.tsx'

/** One component on the page. `files` names what it shows, so that a test finds components that are missing here. */
export function Sample(props: {
  readonly title: string
  readonly files: string
  readonly isWide?: boolean
  readonly children: ReactNode
}) {
  const { title, files, isWide, children } = props
  return (
    <div data-files={files} className={isWide ? 'components-wide' : ''}>
      <Card title={title}>
        <CardBody>
          <div className="stack">{children}</div>
        </CardBody>
      </Card>
    </div>
  )
}
