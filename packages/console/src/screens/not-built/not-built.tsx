import { useLocation } from '@tanstack/react-router'
import { Card, CardBody } from '../../components/card.tsx'
import { Equivalents } from '../../components/command.tsx'
import { apiText } from '../../words/equivalents.ts'
import { Page } from '../../shell/page.tsx'
import { NotFound } from './not-found.tsx'

interface Later {
  readonly title: string
  readonly cli: string
  readonly path: string
}

/** The screens that are not built yet, with the commands that do the same. */
// biome-ignore format: one row per screen
const NOT_BUILT: Readonly<Record<string, Later>> = {
  sources: { title: 'Sources', cli: 'redrive sources', path: 'GET /api/v1/sources' },
  audit: { title: 'Audit', cli: 'redrive audit list', path: 'GET /api/v1/audit' },
  settings: { title: 'Settings', cli: 'redrive token list', path: 'GET /api/v1/tokens' },
}

/** A screen that follows: it shows the command that does the same. */
export function NotBuilt() {
  const path = useLocation().pathname.replace(/^\//, '')
  const found = Object.entries(NOT_BUILT).find(([start]) => `${path}/`.startsWith(`${start}/`))?.[1]
  if (found === undefined) return <NotFound />
  return (
    <Page title={found.title} isHeading>
      <Card title={found.title} note="not in the console yet">
        <CardBody>
          <div className="stack">
            <p>This screen is not built yet. The command line and the API do the same:</p>
            <Equivalents cli={found.cli} api={apiText(found.path)} />
          </div>
        </CardBody>
      </Card>
    </Page>
  )
}
