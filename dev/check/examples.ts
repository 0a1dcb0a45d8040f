/**
 * Compiles the TypeScript blocks of the documentation under `strict`, against the declarations that
 * users receive. A block may use the names of CONTEXT without an import.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { publicPackages, ROOT } from './workspace.ts'

const PAGES = [
  'docs/rabbitmq.md',
  'docs/kafka.md',
  'docs/nats.md',
  'docs/fastify.md',
  'packages/transports/rabbitmq/README.md',
  'packages/transports/kafka/README.md',
  'packages/transports/nats/README.md',
  'packages/fastify/README.md',
]

const CONTEXT = `import type { Handler } from '@redrive/runtime'
declare global {
  const url: string
  const brokers: string[]
  const topic: string
  const group: string
  const handle: Handler
  const handler: Handler
  const handleOrder: Handler
  function charge(order: unknown): Promise<void>
  const app: import('fastify').FastifyInstance
  const rabbitmq: typeof import('@redrive/rabbitmq').rabbitmq
  const kafka: typeof import('@redrive/kafka').kafka
  const consume: typeof import('@redrive/runtime').consume
}
`

/** The declarations of clients that users install. */
const CLIENTS = {
  kafkajs: 'packages/transports/kafka/node_modules/kafkajs/types/index.d.ts',
  fastify: 'packages/fastify/node_modules/fastify/fastify.d.ts',
}
/** The installation of the first one downloads binaries. */
const NOT_INSTALLED = ['@confluentinc/kafka-javascript', '@fastify/http-proxy']

interface Example {
  readonly page: string
  /** Line of the page before the first line of the block. */
  readonly line: number
  readonly text: string
}

function examplesIn(page: string): readonly Example[] {
  const text = readFileSync(join(ROOT, page), 'utf8')
  return [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)]
    .map((found) => ({
      page,
      line: text.slice(0, found.index).split('\n').length,
      text: found[1] ?? '',
    }))
    .filter(({ text }) => !NOT_INSTALLED.some((name) => text.includes(name)))
}

interface Manifest {
  readonly exports?: Readonly<Record<string, { readonly types?: string } | string>>
}

/** Returns the declarations of each entry of each package. */
function declarationPaths(): Readonly<Record<string, readonly string[]>> {
  const entries = publicPackages().flatMap(({ name, folder }) => {
    const { exports = {} } = JSON.parse(
      readFileSync(join(folder, 'package.json'), 'utf8'),
    ) as Manifest
    return Object.entries(exports).flatMap(([entry, target]) =>
      typeof target === 'string' || target.types === undefined
        ? []
        : [[`${name}${entry.slice(1)}`, [join(folder, target.types)]] as const],
    )
  })
  const clients = Object.entries(CLIENTS).map(([name, file]) => [name, [join(ROOT, file)]] as const)
  return Object.fromEntries([...entries, ...clients])
}

const folder = join(ROOT, '.reports/examples')
rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })
const examples = PAGES.flatMap(examplesIn)
// The block begins in the first line, so that only the number of its first line must be added.
for (const [at, { text }] of examples.entries())
  writeFileSync(join(folder, `example-${at}.ts`), `${text}\nexport {}\n`)
writeFileSync(join(folder, 'context.d.ts'), CONTEXT)
const compilerOptions = {
  ...{ strict: true, noEmit: true, target: 'es2024', lib: ['es2024'], types: ['node'] },
  ...{ module: 'nodenext', skipLibCheck: true, paths: declarationPaths() },
}
writeFileSync(
  join(folder, 'tsconfig.json'),
  JSON.stringify({ compilerOptions, include: ['*.ts'] }, null, 2),
)
const { status, stdout } = spawnSync('tsc', ['-p', folder, '--pretty', 'false'], {
  cwd: folder,
  encoding: 'utf8',
})
const located = stdout.replace(/^.*?example-(\d+)\.ts\((\d+),/gm, (_, at: string, line: string) => {
  const example = examples[Number(at)]
  return `${example?.page ?? ''}(${Number(line) + (example?.line ?? 0)},`
})
if (status !== 0) console.error(located.replaceAll(relative(ROOT, folder), ''))
console.log(`${status === 0 ? 'PASS' : 'SHORT'} examples ${examples.length} blocks compile`)
process.exitCode = status === 0 ? 0 : 1
