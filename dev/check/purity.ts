/**
 * Core decides only from its arguments. The compiler already rejects timers and I/O there, because
 * core has no Node and no DOM types. This check rejects what the language itself offers: the clock
 * and randomness. It repeats the compiler's part, so that a change of tsconfig cannot allow it.
 */
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseSync, Visitor } from 'oxc-parser'
import { isMain } from './workspace.ts'

const FORBIDDEN_MEMBERS = new Set(['Date.now', 'Math.random'])
const FORBIDDEN_GLOBALS = new Set([
  'console',
  'crypto',
  'fetch',
  'globalThis',
  'performance',
  'process',
  'queueMicrotask',
  'setImmediate',
  'setInterval',
  'setTimeout',
])

/** Returns one sentence for each impure expression in the files of `folder`. */
export function checkPurity(folder: string): string[] {
  const paths = globSync('**/*.ts', { cwd: folder }).sort()
  // A check without files must not pass.
  if (paths.length === 0) return [`no source files below ${folder}`]
  return paths.flatMap((path) => impurities(path, readFileSync(join(folder, path), 'utf8')))
}

function impurities(path: string, text: string): string[] {
  const found: string[] = []
  const report = (start: number, what: string): void => {
    const line = text.slice(0, start).split('\n').length
    found.push(`${path}:${line} uses ${what}: core gets time and randomness as arguments`)
  }
  const checkGlobal = (node: { type: string; start: number; name?: unknown }): void => {
    if (node.type !== 'Identifier' || typeof node.name !== 'string') return
    if (FORBIDDEN_GLOBALS.has(node.name)) report(node.start, node.name)
  }
  new Visitor({
    MemberExpression(node) {
      checkGlobal(node.object)
      if (node.object.type !== 'Identifier' || node.property.type !== 'Identifier') return
      const member = `${node.object.name}.${node.property.name}`
      if (FORBIDDEN_MEMBERS.has(member)) report(node.start, member)
    },
    CallExpression(node) {
      checkGlobal(node.callee)
      if (node.callee.type === 'Identifier' && node.callee.name === 'Date') {
        report(node.start, 'Date()')
      }
    },
    NewExpression(node) {
      if (node.callee.type !== 'Identifier' || node.callee.name !== 'Date') return
      if (node.arguments.length === 0) report(node.start, 'new Date()')
    },
  }).visit(parseSync(path, text).program)
  return found
}

if (isMain(import.meta)) {
  const problems = checkPurity(resolve(import.meta.dirname, '../../packages/core/src'))
  for (const problem of problems) console.error(problem)
  process.exitCode = problems.length > 0 ? 1 : 0
}
