import type { CallExpression, ObjectExpression } from 'acorn'
import { type Draft, dropType, refuse, sourceOf, startDraft } from './draft.ts'
import type { Proposal } from './proposal.ts'
import {
  applyEdits,
  type FoundNode,
  functionAround,
  importEdit,
  indentOf,
  isFunction,
  methodOf,
  nodesIn,
  parseSource,
  type Syntax,
} from './syntax.ts'

type Call = FoundNode<CallExpression>

/** The calls of a consumer of kafkajs. */
interface Calls {
  readonly create: Call
  readonly connect: Call
  readonly subscribe: Call
  readonly run: Call
}

/**
 * Proposes `withRedrive` for `consumer.run({ eachMessage })`. Undefined when the file has no such call. The client, its
 * group and its options stay.
 */
export function rewriteKafkajs(text: string, isTypeScript: boolean): Proposal | undefined {
  if (!text.includes('kafkajs') || !text.includes('eachMessage')) return undefined
  const program = parseSource(text, isTypeScript)
  const draft = startDraft(text)
  if (program === undefined)
    return { kind: 'by hand', reasons: [{ line: 1, text: 'The file cannot be parsed.' }] }
  const all = nodesIn(program)
  const calls = readCalls(draft, all)
  if (calls !== undefined) {
    rewriteRun(draft, calls)
    addClients(draft, calls, all)
    draft.edits.push(importEdit(program, [['withRedrive', '@redrive/kafka/kafkajs']], text))
  }
  if (draft.reasons.length > 0) return { kind: 'by hand', reasons: draft.reasons }
  return { kind: 'change', after: applyEdits(text, draft.edits) }
}

function readCalls(draft: Draft, all: readonly FoundNode[]): Calls | undefined {
  const only = (method: string): Call | undefined => {
    const found = all.filter(({ node }) => methodOf(node)?.method === method) as readonly Call[]
    if (found.length === 1) return found[0]
    draft.reasons.push({
      line: 1,
      text: `The file has ${found.length} calls of ${method}(), and 1 is expected.`,
    })
    return undefined
  }
  const [create, subscribe, run] = [only('consumer'), only('subscribe'), only('run')]
  const name = run === undefined ? '' : (methodOf(run.node)?.object ?? '')
  const connect = all.find(({ node }) => {
    const call = methodOf(node)
    return call?.object === name && call.method === 'connect'
  }) as Call | undefined
  if (create === undefined || subscribe === undefined || run === undefined) return undefined
  if (connect === undefined) {
    refuse(draft, run.node, `The file does not connect "${name}".`)
    return undefined
  }
  for (const one of [connect, subscribe]) {
    if (statementOf(one)?.type !== 'ExpressionStatement')
      refuse(draft, one.node, 'The call is not a statement with await.')
    if (functionAround(one) !== functionAround(run))
      refuse(draft, one.node, 'The calls of the consumer are in different functions.')
  }
  if (statementOf(run)?.type !== 'ExpressionStatement')
    refuse(draft, run.node, 'The call is not a statement with await.')
  return { create, connect, subscribe, run }
}

/** Returns the statement of an awaited call. */
const statementOf = ({ around }: Call): Syntax | undefined =>
  around[0]?.type === 'AwaitExpression' ? around[1] : undefined

/** Returns the properties of the object that is passed, by name. */
function propertiesOf(call: Call): ReadonlyMap<string, Syntax> {
  const [given] = call.node.arguments
  const properties =
    given?.type === 'ObjectExpression' ? (given satisfies ObjectExpression).properties : []
  return new Map(
    properties.flatMap((one) =>
      one.type === 'Property' && one.key.type === 'Identifier'
        ? [[one.key.name, one.value] as const]
        : [],
    ),
  )
}

function rewriteRun(draft: Draft, { create, subscribe, run }: Calls): void {
  const [group, topic] = [propertiesOf(create).get('groupId'), propertiesOf(subscribe).get('topic')]
  const given = propertiesOf(run)
  const handler = given.get('eachMessage')
  if (group === undefined)
    refuse(draft, create.node, 'The group of the consumer is not stated here.')
  if (topic === undefined)
    refuse(draft, subscribe.node, 'The consumer does not subscribe to one topic.')
  if (handler === undefined || !isFunction(handler))
    refuse(draft, run.node, 'eachMessage is not a function.')
  if (given.size !== 1) refuse(draft, run.node, 'run() has options other than eachMessage.')
  const [subscribed, statement] = [statementOf(subscribe), statementOf(run)]
  if (group === undefined || topic === undefined || handler === undefined) return
  if (subscribed === undefined || statement === undefined || !isFunction(handler)) return
  rewriteHandler(draft, handler)
  const name = methodOf(run.node)?.object ?? 'consumer'
  const consumer = name === 'consumer' ? 'consumer' : `consumer: ${name}`
  const beginning = propertiesOf(subscribe).get('fromBeginning')
  const from = beginning === undefined ? '' : `, fromBeginning: ${sourceOf(draft, beginning)}`
  const indent = indentOf(draft.text, statement.start)
  const options = `{ topic: ${sourceOf(draft, topic)}, group: ${sourceOf(draft, group)}, ${consumer}, producer, admin }`
  const after = [
    `, ${options})`,
    `await ${name}.subscribe({ topics: redriven.topics${from} })`,
    `await ${name}.run(redriven.run)`,
  ]
  draft.edits.push(
    { start: subscribed.start, end: subscribed.end, text: '' },
    { start: statement.start, end: handler.start, text: 'const redriven = await withRedrive(' },
    { start: handler.end, end: run.node.end, text: after.join(`\n${indent}`) },
  )
}

/** `({ message })` becomes `(message)`, and the value its bytes. */
function rewriteHandler(draft: Draft, handler: Syntax): void {
  const [parameter] = 'params' in handler ? handler.params : []
  const names =
    parameter?.type === 'ObjectPattern'
      ? parameter.properties.map((one) => sourceOf(draft, one))
      : []
  if (parameter === undefined || names.length !== 1 || names[0] !== 'message') {
    refuse(draft, handler, 'The handler uses more than the message.')
    return
  }
  dropType(draft, handler, parameter)
  const isBare = draft.text[parameter.start - 1] === '('
  draft.edits.push({
    start: parameter.start,
    end: parameter.end,
    text: isBare ? 'message' : '(message)',
  })
  for (const { node, around } of nodesIn(handler)) {
    const [parent, grand] = around
    if (node.type !== 'Identifier' || node.name !== 'message' || around.includes(parameter))
      continue
    if (parent?.type !== 'MemberExpression' || parent.property === node) {
      if (parent?.type !== 'MemberExpression')
        refuse(draft, node, 'The handler passes the message to other code.')
      continue
    }
    const isValue = parent.property.type === 'Identifier' && parent.property.name === 'value'
    if (!isValue || grand?.type === 'BinaryExpression') {
      refuse(
        draft,
        node,
        `The handler uses "${sourceOf(draft, grand?.type === 'BinaryExpression' ? grand : parent)}".`,
      )
    } else
      draft.edits.push({ start: parent.start, end: parent.end, text: 'Buffer.from(message.bytes)' })
  }
}

/** Adds the producer and the admin client, which copies and topics need, and the stop. */
function addClients(
  draft: Draft,
  { create, connect, run }: Calls,
  all: readonly FoundNode[],
): void {
  for (const name of ['producer', 'admin', 'redriven']) {
    const used = all.find(({ node }) => node.type === 'Identifier' && node.name === name)
    if (used !== undefined) refuse(draft, used.node, `The file already uses the name "${name}".`)
  }
  const declared = create.around.find(({ type }) => type === 'VariableDeclaration')
  const connected = statementOf(connect)
  const client = methodOf(create.node)?.object
  if (declared === undefined || connected === undefined || client === undefined) {
    refuse(draft, create.node, 'The consumer is not a variable.')
    return
  }
  const end = draft.text[connected.end - 1] === ';' ? ';' : ''
  const add = ({ start, end: at }: Syntax, lines: readonly string[]) => {
    const indent = indentOf(draft.text, start)
    draft.edits.push({
      start: at,
      end: at,
      text: lines.map((line) => `\n${indent}${line}${end}`).join(''),
    })
  }
  add(declared, [
    `const producer = ${client}.producer({ idempotent: true })`,
    `const admin = ${client}.admin()`,
  ])
  add(connected, ['await Promise.all([producer.connect(), admin.connect()])'])
  stopFirst(draft, run, all)
}

function stopFirst(draft: Draft, run: Call, all: readonly FoundNode[]): void {
  const name = methodOf(run.node)?.object
  const disconnects = all.filter(({ node }) => {
    const call = methodOf(node)
    return call?.object === name && call?.method === 'disconnect'
  }) as readonly Call[]
  if (disconnects.length === 0)
    refuse(draft, run.node, `The file does not disconnect "${name ?? 'the consumer'}" at its end.`)
  for (const one of disconnects) {
    const statement = statementOf(one)
    const scope = functionAround(run)
    if (
      statement?.type !== 'ExpressionStatement' ||
      (scope !== undefined && !one.around.includes(scope))
    ) {
      refuse(draft, one.node, 'The consumer is disconnected where its stop cannot be added.')
      continue
    }
    const indent = indentOf(draft.text, statement.start)
    const end = draft.text[statement.end - 1] === ';' ? ';' : ''
    draft.edits.push(
      {
        start: statement.start,
        end: statement.start,
        text: `await redriven.stop()${end}\n${indent}`,
      },
      {
        start: statement.end,
        end: statement.end,
        text: `\n${indent}await Promise.all([producer.disconnect(), admin.disconnect()])${end}`,
      },
    )
  }
}
