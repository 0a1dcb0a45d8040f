/**
 * The public surface of each package is a file, api-report.md, so that a change of it shows in
 * review. Reads the declarations that `tsc -b` wrote; `--update` writes the reports.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import {
  CompilerState,
  Extractor,
  ExtractorConfig,
  ExtractorLogLevel,
} from '@microsoft/api-extractor'
import { type PublicPackage, publicPackages, ROOT } from './workspace.ts'

const SCRATCH = join(ROOT, '.reports/api')

function reportName(packageName: string): string {
  return `${packageName.replace(/^@redrive\//, '')}.api.md`
}

function configure({ name, folder }: PublicPackage): ExtractorConfig {
  const entry = join(folder, 'dist/index.d.ts')
  return ExtractorConfig.prepare({
    packageJsonFullPath: join(folder, 'package.json'),
    configObjectFullPath: undefined,
    configObject: {
      projectFolder: folder,
      mainEntryPointFilePath: entry,
      newlineKind: 'lf',
      compiler: {
        // Api-extractor brings its own compiler, older than ours: give it only what it needs.
        overrideTsconfig: {
          compilerOptions: {
            target: 'es2022',
            lib: ['es2023'],
            module: 'nodenext',
            moduleResolution: 'nodenext',
            strict: true,
            types: ['node'],
          },
          files: [entry],
        },
      },
      apiReport: {
        enabled: true,
        reportFileName: reportName(name),
        reportFolder: SCRATCH,
        reportTempFolder: join(SCRATCH, 'temp'),
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      messages: {
        extractorMessageReporting: {
          // No @public tag on each export: being exported is being public here.
          'ae-missing-release-tag': { logLevel: ExtractorLogLevel.None },
        },
      },
    },
  })
}

/** The report as the declarations say it now; errors on the way go to `problems`. */
function extract(config: ExtractorConfig, state: CompilerState, problems: string[]): string {
  Extractor.invoke(config, {
    // As a local build it only writes the report; the comparison is ours.
    localBuild: true,
    compilerState: state,
    messageCallback(message) {
      message.handled = true
      if (message.logLevel === ExtractorLogLevel.Error) problems.push(message.text)
    },
  })
  return readFileSync(join(SCRATCH, reportName(config.packageJson?.name ?? '')), 'utf8')
}

function check(update: boolean): string[] {
  const configs = publicPackages().map(configure)
  const [first, ...others] = configs
  if (!first) return ['no public packages found']
  // One compilation for all packages: most of the time goes into it.
  const state = CompilerState.create(first, {
    additionalEntryPoints: others.map((config) => config.mainEntryPointFilePath),
  })
  const problems: string[] = []
  for (const config of configs) {
    const report = extract(config, state, problems)
    const path = join(config.projectFolder, 'api-report.md')
    if (existsSync(path) && readFileSync(path, 'utf8') === report) continue
    const short = relative(ROOT, path)
    if (update) {
      writeFileSync(path, report)
      console.log(`wrote ${short}`)
    } else {
      problems.push(`${short} is stale: run \`pnpm api:update\` and review what changed`)
    }
  }
  return problems
}

mkdirSync(join(SCRATCH, 'temp'), { recursive: true })
const problems = check(process.argv.includes('--update'))
for (const problem of problems) console.error(problem)
process.exitCode = problems.length > 0 ? 1 : 0
