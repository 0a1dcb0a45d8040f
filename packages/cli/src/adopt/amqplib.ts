import type { CallExpression, Program } from 'acorn'
import { type Consumer, rewriteHandler } from './amqplib-handler.ts'
import { stopBeforeClose, stopOnSignal } from './amqplib-stop.ts'
import { type Draft, dropType, rangeOf, refuse, sourceOf, startDraft } from './draft.ts'
import type { Proposal, Reason } from './proposal.ts'
import {
  applyEdits,
  type Edit,
  type FoundNode,
  functionAround,
  importEdit,
  isFunction,
  isName,
  methodOf,
  nodesIn,
  parseSource,
  type Syntax,
} from './syntax.ts'

/**
 * Proposes Redrive for `channel.consume(queue, handler)`. Undefined when the file has no such call. Only plain handlers
 * are changed: they acknowledge as their last step, reject in a `catch`, and keep the message for themselves.
 */
export function rewriteAmqplib(text: string, isTypeScript: boolean): Proposal | undefined {
  if (!text.includes('amqplib')) return undefined
  const program = parseSource(text, isTypeScript)
  if (program === undefined) return byHand([{ line: 1, text: 'The file cannot be parsed.' }])
  const all = nodesIn(program)
  const calls = all.filter(isConsume)
  const [call, another] = calls
  if (call === undefined) return undefined
  const draft = startDraft(text)
  if (another !== undefined) refuse(draft, another.node, 'The file has several consumers.')
  refuseNames(draft, all)
  const consumer = readConsumer(draft, call)
  const broker = readBroker(draft, all, call)
  if (consumer !== undefined) {
    refuseTemporaryQueue(draft, all)
    dropType(draft, consumer.handler, consumer.parameter)
    rewriteHandler(draft, consumer)
    rewriteCall(draft, consumer, broker, all)
    draft.edits.push(importsOf(program, draft))
  }
  if (draft.reasons.length > 0) return byHand(draft.reasons)
  return { kind: 'change', after: applyEdits(text, draft.edits) }
}

const byHand = (reasons: readonly Reason[]): Proposal => ({ kind: 'by hand', reasons })

/** The names that the change adds. */
const ADDED = ['consume', 'consumer', 'rabbitmq', 'business']

function refuseNames(draft: Draft, all: readonly FoundNode[]): void {
  for (const { node, around } of all) {
    if (node.type !== 'Identifier' || !ADDED.includes(node.name)) continue
    const [parent] = around
    const isProperty = parent?.type === 'MemberExpression' && parent.property === node
    if (!isProperty) refuse(draft, node, `The file already uses the name "${node.name}".`)
  }
}

const isConsume = (found: FoundNode): found is FoundNode<CallExpression> =>
  methodOf(found.node)?.method === 'consume' && (found.node as CallExpression).arguments.length >= 2

function readConsumer(draft: Draft, call: FoundNode<CallExpression>): Consumer | undefined {
  const [, handler, options] = call.node.arguments
  const parameter =
    handler !== undefined && isFunction(handler) && 'params' in handler ? handler.params : []
  const [message] = parameter
  if (handler === undefined || message?.type !== 'Identifier') {
    refuse(draft, call.node, 'The handler is not a function with one parameter.')
    return undefined
  }
  if (options !== undefined && !/^\{\s*noAck:\s*false,?\s*\}$/.test(sourceOf(draft, options))) {
    refuse(draft, options, 'The consumer has options.')
  }
  const around = functionAround(call)
  if (around !== undefined && !('async' in around && around.async === true)) {
    refuse(draft, call.node, 'The consumer is not started in an async function.')
  }
  const channel = methodOf(call.node)?.object ?? ''
  return { call, channel, handler, message: message.name, parameter: message }
}

/** The consumer of Redrive has its own connection, which such a queue does not accept or does not outlive. */
function refuseTemporaryQueue(draft: Draft, all: readonly FoundNode[]): void {
  for (const { node } of all) {
    if (node.type !== 'CallExpression' || methodOf(node)?.method !== 'assertQueue') continue
    const given = node.arguments.map((one) => sourceOf(draft, one)).join()
    if (/^(['"`])\1(,|$)|(exclusive|autoDelete)\s*:\s*true/.test(given))
      refuse(draft, node, 'The queue is exclusive, or the broker deletes it with its consumer.')
  }
}

/** The address of the broker, and the connection to it. */
interface Broker {
  readonly url: string
  readonly connection: string
}

/** Returns the text of the address. It must be visible where the consumer is started. */
function readBroker(draft: Draft, all: readonly FoundNode[], call: FoundNode): Broker {
  const connects = all.filter(
    ({ node }) =>
      node.type === 'CallExpression' &&
      (isName(node.callee, 'connect') || methodOf(node)?.method === 'connect'),
  )
  const [connect] = connects
  const url = connect?.node.type === 'CallExpression' ? connect.node.arguments[0] : undefined
  if (connect === undefined || url === undefined || connects.length > 1) {
    refuse(draft, call.node, 'The file does not connect to one broker with an address.')
    return { url: '', connection: '' }
  }
  if (functionAround(connect) !== functionAround(call)) {
    refuse(draft, call.node, 'The consumer and its connection are in different functions.')
  }
  const [awaited, declared] = connect.around
  const isNamed =
    awaited?.type === 'AwaitExpression' &&
    declared?.type === 'VariableDeclarator' &&
    declared.id.type === 'Identifier'
  if (!isNamed) refuse(draft, connect.node, 'The connection is not a variable.')
  return { url: sourceOf(draft, url), connection: isNamed ? sourceOf(draft, declared.id) : '' }
}

function rewriteCall(
  draft: Draft,
  consumer: Consumer,
  { url, connection }: Broker,
  all: readonly FoundNode[],
): void {
  const { call, handler } = consumer
  const [queue] = call.node.arguments
  if (queue === undefined) return
  const isAwaited = call.around[0]?.type === 'AwaitExpression'
  const expression = isAwaited ? (call.around[0] as Syntax) : call.node
  const statement = call.around[isAwaited ? 1 : 0]
  const from = `rabbitmq({ url${url === 'url' ? '' : `: ${url}`}, queue: ${sourceOf(draft, queue)}, ${adopt(draft)} })`
  const options = optionsOf(draft, all)
  draft.edits.push(
    {
      start: startOf(draft, { ...consumer, connection, expression, statement }, all),
      end: queue.end,
      text: `const consumer = await consume(${from}`,
    },
    { start: handler.end, end: call.node.end, text: `${options})` },
  )
}

const adopt = ({ text }: Draft) =>
  /x-queue-type.{0,4}\s*['"]quorum/.test(text)
    ? "topology: 'adopt'"
    : "topology: 'adopt', queueType: 'classic'"

interface Start {
  readonly call: FoundNode
  readonly channel: string
  readonly connection: string
  readonly expression: Syntax
  readonly statement: Syntax | undefined
}

/** Returns where the call begins with its variable, whose uses it rewrites. */
function startOf(draft: Draft, start: Start, all: readonly FoundNode[]): number {
  const { call, channel, connection, expression, statement } = start
  if (statement?.type === 'ExpressionStatement') {
    const scope = call.around[call.around.indexOf(statement) + 1]
    if (!stopBeforeClose(draft, { statement, scope, names: [channel, connection] }, all))
      stopOnSignal(draft, statement, connection)
    return expression.start
  }
  const declaration = all.find(({ node }) => node === statement)?.around[0]
  const isTag =
    statement?.type === 'VariableDeclarator' &&
    sourceOf(draft, statement.id).replaceAll(/\s/g, '') === '{consumerTag}'
  if (!isTag || declaration === undefined) {
    refuse(draft, expression, 'The result of consume is used.')
    return expression.start
  }
  for (const found of all) stopInsteadOfCancel(draft, found)
  return declaration.start
}

function stopInsteadOfCancel(draft: Draft, { node, around }: FoundNode): void {
  if (node.type !== 'Identifier' || node.name !== 'consumerTag') return
  const [parent] = around
  if (parent?.type === 'Property') return
  if (parent !== undefined && methodOf(parent)?.method === 'cancel') {
    draft.edits.push({ ...rangeOf(parent), text: 'consumer.stop()' })
  } else refuse(draft, node, 'The consumer tag is used.')
}

/** Returns the third argument: rules for errors, and the prefetch as the concurrency. */
function optionsOf({ terminal }: Draft, all: readonly FoundNode[]): string {
  const prefetch = all.map(({ node }) => node).find((node) => methodOf(node)?.method === 'prefetch')
  const count = prefetch?.type === 'CallExpression' ? prefetch.arguments[0] : undefined
  const options = [
    ...(count?.type === 'Literal' && typeof count.value === 'number'
      ? [`concurrency: ${count.value}`]
      : []),
    ...(terminal.size === 0 ? [] : [`classify: [business(${[...terminal].join(', ')})]`]),
  ]
  return options.length === 0 ? '' : `, { ${options.join(', ')} }`
}

const importsOf = (program: Program, { terminal, text }: Draft): Edit =>
  importEdit(
    program,
    [
      ...(terminal.size === 0 ? [] : [['business', '@redrive/core'] as const]),
      ['rabbitmq', '@redrive/rabbitmq'],
      ['consume', '@redrive/runtime'],
    ],
    text,
  )
