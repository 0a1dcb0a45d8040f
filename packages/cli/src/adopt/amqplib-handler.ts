import type { CallExpression } from 'acorn'
import { type Draft, rangeOf, refuse } from './draft.ts'
import { type FoundNode, isFunction, isName, methodOf, nodesIn, type Syntax } from './syntax.ts'

/** The consumer of the file, and what its handler calls the channel and the message. */
export interface Consumer {
  readonly call: FoundNode<CallExpression>
  readonly channel: string
  readonly handler: Syntax
  readonly message: string
  readonly parameter: Syntax
}

/** Rewrites the handler: returning acknowledges, and the error that it has caught rejects. */
export function rewriteHandler(draft: Draft, consumer: Consumer): void {
  const { handler, channel, message } = consumer
  const body = nodesIn(handler)
  let acknowledged = 0
  for (const found of body) {
    const { node, around } = found
    if (node.type !== 'Identifier' || (node.name !== message && node.name !== channel)) continue
    const [parent, grand] = around
    // A parameter, or a property with the same name.
    if (
      parent === handler ||
      (parent?.type === 'MemberExpression' && parent.property === node && !parent.computed)
    )
      continue
    if (node.name === channel) {
      if (grand !== undefined && methodOf(grand) !== undefined) {
        acknowledged += settle(draft, { node: grand, around: around.slice(2) }, consumer) ? 1 : 0
      } else refuse(draft, node, `The handler uses "${channel}" for another purpose.`)
    } else if (parent !== undefined) useMessage(draft, { node, around }, parent, consumer)
  }
  if (acknowledged === 0 && draft.reasons.length === 0)
    refuse(draft, handler, 'The handler does not acknowledge the message.')
}

/** Rewrites `ack`, `nack` and `reject`. Returns true for an acknowledgement. */
function settle(draft: Draft, call: FoundNode, { message, handler }: Consumer): boolean {
  const { node, around } = call
  const method = methodOf(node)?.method
  if (node.type !== 'CallExpression' || !isName(node.arguments[0], message)) {
    refuse(draft, node, `The handler calls ${method ?? 'a method'} of the channel.`)
    return false
  }
  if (around.find(isFunction) !== handler) {
    refuse(draft, node, 'The handler settles the message in another function.')
    return false
  }
  const [statement] = around
  const isReturn = statement?.type === 'ReturnStatement'
  if (statement === undefined || (!isReturn && statement.type !== 'ExpressionStatement')) {
    refuse(draft, node, `The result of ${method ?? 'the call'} is used.`)
    return false
  }
  if (method === 'ack') {
    if (!isReturn && !isLast(statement, around[1])) {
      refuse(draft, node, 'The handler acknowledges before its work has ended.')
    }
    draft.edits.push({ ...rangeOf(statement), text: isReturn ? 'return' : '' })
    return true
  }
  if (method === 'nack' || method === 'reject') reject(draft, call, statement, handler)
  else refuse(draft, node, `The handler calls ${method ?? 'a method'} of the channel.`)
  return false
}

/** Returns whether nothing but `return` follows in the block of a statement. */
function isLast(statement: Syntax, block: Syntax | undefined): boolean {
  if (block?.type !== 'BlockStatement') return false
  const after = block.body.slice(block.body.findIndex((one) => one === statement) + 1)
  return after.every((one) => one.type === 'ReturnStatement' && !one.argument)
}

/** A rejection becomes the error that caused it. */
function reject(
  draft: Draft,
  { node, around }: FoundNode,
  statement: Syntax,
  handler: Syntax,
): void {
  const inside = around.slice(0, around.indexOf(handler))
  const caught = inside.find((one) => one.type === 'CatchClause')
  const tried = inside.find((one) => one.type === 'TryStatement')
  const error = caught?.type === 'CatchClause' ? caught.param : undefined
  if (
    error?.type !== 'Identifier' ||
    (tried !== undefined && inside.indexOf(tried) < inside.indexOf(caught as Syntax))
  ) {
    refuse(draft, node, 'The handler rejects the message without an error that it has caught.')
    return
  }
  const condition = inside
    .slice(0, inside.indexOf(caught as Syntax))
    .find((one) => one.type === 'IfStatement')
  if (
    condition?.type === 'IfStatement' &&
    !mayRequeue(node) &&
    !keepTerminal(draft, condition.test, error.name)
  ) {
    refuse(
      draft,
      node,
      'The handler rejects the message under a condition that Redrive cannot convert.',
    )
  }
  draft.edits.push({ ...rangeOf(statement), text: `throw ${error.name}` })
}

/** `nack(message)` and `nack(message, false, true)` return the message to the queue. */
function mayRequeue(node: Syntax): boolean {
  if (node.type !== 'CallExpression') return true
  const requeue = node.arguments.at(methodOf(node)?.method === 'reject' ? 1 : 2)
  return !(requeue?.type === 'Literal' && requeue.value === false)
}

/** `if (error instanceof CardDeclined) nack` becomes a rule: a retry does not help. */
function keepTerminal(draft: Draft, test: Syntax, error: string): boolean {
  if (test.type !== 'BinaryExpression' || test.operator !== 'instanceof') return false
  if (!isName(test.left, error) || test.right.type !== 'Identifier') return false
  draft.terminal.add(test.right.name)
  return true
}

/** Rewrites `message.content` and the properties that Redrive has, too. */
function useMessage(
  draft: Draft,
  { node, around }: FoundNode,
  parent: Syntax,
  { message }: Consumer,
): void {
  const [, grand] = around
  if (methodOf(parent) !== undefined) return // an argument of ack, which is checked there
  const isChecked = isNullCheck(parent, message)
  if (isChecked) return
  if (parent.type !== 'MemberExpression' || parent.property.type !== 'Identifier') {
    refuse(draft, node, `The handler passes "${message}" to other code.`)
    return
  }
  const range = rangeOf(parent)
  const property = parent.property.name
  if (property === 'content') {
    draft.edits.push({ ...range, text: `Buffer.from(${message}.bytes)` })
    return
  }
  const inner =
    grand?.type === 'MemberExpression' && grand.property.type === 'Identifier'
      ? grand.property.name
      : ''
  const replacement = property === 'properties' ? PROPERTIES[inner] : undefined
  if (replacement === undefined || grand === undefined) {
    refuse(
      draft,
      node,
      `The handler uses "${message}.${property}${inner === '' ? '' : `.${inner}`}".`,
    )
  } else draft.edits.push({ ...rangeOf(grand), text: `${message}.${replacement}` })
}

const PROPERTIES: Readonly<Record<string, string>> = {
  headers: 'headers',
  messageId: 'id',
  contentType: 'contentType',
  type: 'type',
}

/** `if (message === null) return` and `if (!message) return` stay: they are never true. */
const isNullCheck = (parent: Syntax, message: string): boolean =>
  (parent.type === 'UnaryExpression' && parent.operator === '!') ||
  (parent.type === 'BinaryExpression' &&
    isName(parent.left, message) &&
    parent.right.type === 'Literal' &&
    parent.right.value === null)
