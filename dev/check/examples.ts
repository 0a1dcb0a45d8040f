/**
 * Compiles every TypeScript block of the documentation under `strict`, against the declarations that
 * users receive. A block may use the names of examples/context.ts and the imports of earlier blocks of its
 * page. A block that prints must be a program whose output a proof compares, or be listed there.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Block, blocksIn, isListed, prints, unusedEntries } from './examples/blocks.ts'
import { CONTEXT, EXCEPTIONS, FILES, NOT_INSTALLED, NOT_RUN } from './examples/context.ts'
import { documentationPages, publicPackages, ROOT } from './workspace.ts'

const FOLDER = join(ROOT, '.reports/examples')

const COMPILER_OPTIONS = {
  ...{ strict: true, noEmit: true, target: 'es2024', lib: ['es2024'], types: ['node'] },
  ...{ module: 'nodenext', skipLibCheck: true, allowImportingTsExtensions: true },
  // NestJS needs them.
  ...{ experimentalDecorators: true, emitDecoratorMetadata: true },
}

/** Links our packages and the packages that they are tested with, as an installation would. */
function linkPackages(): void {
  const tested = globSync('{packages/{*,*/*},examples/*}/node_modules/{[!@.]*,@*/*}', { cwd: ROOT })
    .filter((path) => !path.includes('/@redrive/'))
    .map((path) => [path.split('/node_modules/')[1] ?? '', join(ROOT, path)] as const)
  const own = publicPackages().map(({ name, folder }) => [name, folder] as const)
  const node = ['@types/node', 'vitest'].map(
    (name) => [name, join(ROOT, 'node_modules', name)] as const,
  )
  // A page for contributors imports the test set-up of this repository.
  const support = ['@redrive/dev-support', join(ROOT, 'dev/support')] as const
  for (const [name, target] of [...own, support, ...node, ...tested]) {
    const link = join(FOLDER, 'node_modules', name)
    if (existsSync(link)) continue
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(target, link)
  }
}

function writeBlocks(blocks: readonly Block[]): void {
  for (const folder of ['pages', 'src']) mkdirSync(join(FOLDER, folder), { recursive: true })
  for (const [path, text] of Object.entries(FILES)) writeFileSync(join(FOLDER, 'pages', path), text)
  // The block begins in the first line, so that only the number of its first line must be added.
  for (const [at, { text, inherited }] of blocks.entries()) {
    const file = join(FOLDER, 'pages', `example-${at}.ts`)
    writeFileSync(file, [text, inherited, 'export {}', ''].join('\n'))
  }
  const missing = Object.entries(NOT_INSTALLED).map(
    ([name, declarations]) => `declare module '${name}' {\n${declarations}\n}\n`,
  )
  const tsconfig = { compilerOptions: COMPILER_OPTIONS, include: ['**/*.ts'] }
  writeFileSync(join(FOLDER, 'context.d.ts'), CONTEXT)
  writeFileSync(join(FOLDER, 'missing.d.ts'), missing.join(''))
  writeFileSync(join(FOLDER, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(FOLDER, 'tsconfig.json'), JSON.stringify(tsconfig, null, 2))
}

/** Returns the errors of the compiler, at their places in the pages. */
function compile(blocks: readonly Block[]): readonly string[] {
  const { status, stdout } = spawnSync('tsc', ['-p', FOLDER, '--pretty', 'false'], {
    ...{ cwd: FOLDER, encoding: 'utf8' },
  })
  if (status === 0) return []
  const place = /^.*?example-(\d+)\.ts\((\d+),/gm
  const located = stdout.replace(place, (_, at: string, line: string) => {
    const block = blocks[Number(at)]
    return `${block?.page ?? ''}(${Number(line) + (block?.line ?? 0)},`
  })
  return [located]
}

rmSync(FOLDER, { recursive: true, force: true })
linkPackages()
const found = documentationPages().flatMap((page) => blocksIn(ROOT, page))
const blocks = found.filter((block) => !isListed(block, EXCEPTIONS))
writeBlocks(blocks)
const problems = [
  ...compile(blocks),
  ...unusedEntries(found, [...EXCEPTIONS, ...NOT_RUN]).map(
    ([page, start]) => `${page} has no block that begins with "${start}"`,
  ),
  ...blocks
    .filter((block) => prints(block) && !block.isProgram && !isListed(block, NOT_RUN))
    .map(({ page, line }) => `${page}(${line}): it prints, but is no program with an output`),
]
for (const problem of problems) console.error(problem)
const verdict = problems.length === 0 ? 'PASS' : 'SHORT'
console.log(
  `${verdict} examples ${blocks.length} of ${found.length} blocks compile, goal all but ${EXCEPTIONS.length}`,
)
process.exitCode = problems.length === 0 ? 0 : 1
