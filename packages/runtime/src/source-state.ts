import { watchSource } from './events.ts'

/** The connection of a consumer to its source, as its transport reports it. */
export interface SourceState {
  isConnected: boolean
  /** Partitions of the topic; undefined when the transport does not report them. */
  assigned: number | undefined
  /** Topics that do not exist, as the transport reports them. */
  readonly missing: Set<string>
}

/** Follows the events of a transport. Returns the state and a function that ends this. */
export function followSource(transport: { readonly source: string }): {
  state: SourceState
  end: () => void
} {
  const state: SourceState = { isConnected: true, assigned: undefined, missing: new Set() }
  const end = watchSource(transport.source, (event, from = transport) => {
    if (from !== transport) return
    if (event.type === 'connection_lost') state.isConnected = false
    if (event.type === 'connection_restored') state.isConnected = true
    if (event.type === 'assignment_changed') state.assigned = event.assigned
    if (event.type !== 'topic_missing') return
    if (event.problem === undefined) state.missing.delete(event.where)
    else state.missing.add(event.where)
  })
  return { state, end }
}
