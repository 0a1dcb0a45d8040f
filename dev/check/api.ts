/**
 * Keeps the public surface of each package in a file, api-report.md, so that changes show in
 * review. A public signature refers only to types that users can import. Reads the declarations
 * that `tsc -b` wrote; `--update` writes the reports.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import {
  CompilerState,
  Extractor,
  ExtractorConfig,
  ExtractorLogLevel,
  ExtractorMessageId,
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
        // Api-extractor contains an older compiler than ours, so it gets only the settings that it
        // needs.
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
          // Exports need no @public tag, because every export is public here.
          'ae-missing-release-tag': { logLevel: ExtractorLogLevel.None },
        },
      },
    },
  })
}

/** Returns the report for the current declarations; adds errors to `problems`. */
function extract(config: ExtractorConfig, state: CompilerState, problems: string[]): string {
  const name = config.packageJson?.name ?? ''
  const missing: string[] = []
  Extractor.invoke(config, {
    // A local build only writes the report. The comparison is done here.
    localBuild: true,
    compilerState: state,
    messageCallback(message) {
      message.handled = true
      if (message.logLevel === ExtractorLogLevel.Error) problems.push(message.text)
      if (message.messageId === ExtractorMessageId.ForgottenExport) {
        missing.push(/"(.+?)"/.exec(message.text)?.[1] ?? message.text)
      }
    },
  })
  const report = readFileSync(join(SCRATCH, reportName(name)), 'utf8')
  problems.push(...unreachable(report, missing).map((problem) => `${name}: ${problem}`))
  return report
}

/**
 * Returns one sentence for each type that the report refers to and users cannot import. A value
 * behind `typeof` may be missing, because the type that refers to it has a name.
 */
function unreachable(report: string, missing: readonly string[]): string[] {
  const types = missing.filter((symbol) => !new RegExp(`typeof ${symbol}\\b`).test(report))
  const imports = report.matchAll(/^import .*?(\w+) \}? ?from '(@redrive\/[^']+\/internal)';$/gm)
  return [
    ...types.map(
      (symbol) => `a public signature refers to "${symbol}": export it from src/index.ts`,
    ),
    ...Array.from(
      imports,
      ([, symbol, entry]) => `a public signature refers to "${symbol}" of ${entry}: make it public`,
    ),
  ]
}

function check(update: boolean): string[] {
  const configs = publicPackages().map(configure)
  const [first, ...others] = configs
  if (!first) return ['no public packages found']
  // One compilation for all packages, because it takes most of the time.
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
      problems.push(`${short} is stale: run \`pnpm api:update\` and review the changes`)
    }
  }
  return problems
}

mkdirSync(join(SCRATCH, 'temp'), { recursive: true })
const problems = check(process.argv.includes('--update'))
for (const problem of problems) console.error(problem)
process.exitCode = problems.length > 0 ? 1 : 0
