/** The table of reference pages, and the declarations that they are generated from. */
import { classificationPage } from './classification.ts'
import { dashboardText, DASHBOARDS } from '../dashboards/grafana.ts'
import { cliPage } from './cli.ts'
import { configPage } from './config.ts'
import { errorsPage } from './errors.ts'
import { eventsPage } from './events.ts'
import { headersPage } from './headers.ts'
import { httpApiPage } from './http-api.ts'
import type { Page } from './markdown.ts'
import { metricsPage } from './metrics.ts'
import { optionsPage } from './options.ts'
import { policyProblems } from './policy.ts'
import {
  type Declaration,
  declarationOf,
  type Package,
  readSources,
  type Sources,
} from './sources.ts'

export interface GeneratedPage extends Page {
  /** Relative to the root of the workspace. */
  readonly path: string
}

/** Generates all pages from the sources below `root`. */
export function generatePages(root: string): readonly GeneratedPage[] {
  const sources = readSources(root)
  const from = (path: string, name: string) => required(sources, path, name)
  const pages: Readonly<Record<string, () => Page>> = {
    classification: classificationPage,
    cli: cliPage,
    'http-api': () => httpApiPage(root),
    errors: () =>
      errorsPage(sources, {
        codes: from('packages/core/src/errors.ts', 'RedriveErrorCode'),
        problems: from('packages/api/src/problem.ts', 'PROBLEMS'),
        exits: from('packages/cli/src/exit.ts', 'EXIT'),
        exitOfProblem: from('packages/cli/src/exit.ts', 'EXIT_OF_PROBLEM'),
      }),
    events: () =>
      eventsPage(
        sources,
        packageIn(sources, 'packages/runtime'),
        from('packages/runtime/src/events.ts', 'RedriveEvent'),
      ),
    headers: () => headersPage(sources),
    metrics: metricsPage,
    options: () => {
      const page = optionsPage(sources)
      const policy = from('packages/core/src/policy/options.ts', 'PolicyOptions')
      return { ...page, problems: [...page.problems, ...policyProblems(sources, policy)] }
    },
    config: () =>
      configPage(root, sources, {
        schema: 'packages/server/redrive.config.schema.json',
        environment: from('packages/cli/src/io.ts', 'Environment'),
        readers: ['packages/cli', 'packages/server'],
      }),
  }
  const dashboards = DASHBOARDS.map((dashboard) => ({
    path: `ops/grafana/redrive-${dashboard.name}.json`,
    text: dashboardText(dashboard),
    problems: [],
  }))
  const references = Object.entries(pages).map(([name, generate]) => ({
    path: `docs/reference/${name}.md`,
    ...generate(),
  }))
  return [...references, ...dashboards]
}

function required(sources: Sources, path: string, name: string): Declaration {
  const found = declarationOf(sources, sources.file(path), name)
  if (found !== undefined) return found
  throw new Error(`${path} declares no ${name}. If it moved, change dev/reference/pages.ts.`)
}

function packageIn({ packages }: Sources, folder: string): Package {
  const found = packages.find((one) => one.folder === folder)
  if (found !== undefined) return found
  throw new Error(`${folder} is not a package. If it moved, change dev/reference/pages.ts.`)
}
