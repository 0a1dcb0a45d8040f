import { type Draft, refuse } from './draft.ts'
import { type FoundNode, functionAround, indentOf, methodOf, type Syntax } from './syntax.ts'

interface Started {
  /** Starts the consumer. */
  readonly statement: Syntax
  /** The block in which the name of the consumer is visible. */
  readonly scope: Syntax | undefined
  /** The channel and its connection. */
  readonly names: readonly string[]
}

/**
 * Stops the consumer before each function closes the channel or the connection. Closing them does not end the
 * consumer of Redrive, which has its own connection. Returns false when nothing closes them.
 */
export function stopBeforeClose(
  draft: Draft,
  { statement, scope, names }: Started,
  all: readonly FoundNode[],
): boolean {
  const closes = all.filter(({ node }) => {
    const call = methodOf(node)
    return call?.method === 'close' && names.includes(call.object)
  })
  const stopped = new Set<Syntax | undefined>()
  for (const close of closes) {
    const owner = functionAround(close)
    if (stopped.has(owner)) continue
    stopped.add(owner)
    const [awaited, closing] = close.around
    const isAwaited = awaited?.type === 'AwaitExpression' && closing?.type === 'ExpressionStatement'
    const isVisible = scope !== undefined && close.around.includes(scope)
    if (isAwaited && isVisible && closing.start > statement.end) {
      const end = endOf(draft, closing)
      const indent = indentOf(draft.text, closing.start)
      const text = `await consumer.stop()${end}\n${indent}`
      draft.edits.push({ start: closing.start, end: closing.start, text })
    } else refuse(draft, close.node, 'The stop of the consumer cannot be added to this close.')
  }
  return closes.length > 0
}

/** A consumer without a reaction to SIGTERM gets one. It also closes the connection, which keeps the process running. */
export function stopOnSignal(draft: Draft, statement: Syntax, connection: string): void {
  if (/\bSIG(TERM|INT)\b/.test(draft.text)) {
    refuse(draft, statement, 'The file handles a signal, and does not cancel the consumer there.')
    return
  }
  const stop = `consumer.stop().then(() => ${connection}.close())`
  const line = `process.once('SIGTERM', () => void ${stop})${endOf(draft, statement)}`
  const text = `\n${indentOf(draft.text, statement.start)}${line}`
  draft.edits.push({ start: statement.end, end: statement.end, text })
}

const endOf = ({ text }: Draft, { end }: Syntax) => (text[end - 1] === ';' ? ';' : '')
