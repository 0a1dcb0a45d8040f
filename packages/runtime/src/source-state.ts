import { watchSource } from './events.ts'

/** The connection of a consumer to its source, as its transport reports it. */
export interface SourceState {
  isConnected: boolean
  /** Partitions of the topic; undefined when the transport does not report them. */
  assigned: number | undefined
}

/** Follows the events of a transport. Returns the state and a function that ends this. */
export function followSource(transport: { readonly source: string }): {
  state: SourceState
  end: () => void
} {
  const state: SourceState = { isConnected: true, assigned: undefined }
  const end = watchSource(transport.source, (event, from = transport) => {
    if (from !== transport) return
    if (event.type === 'connection_lost') state.isConnected = false
    if (event.type === 'connection_restored') state.isConnected = true
    if (event.type === 'assignment_changed') state.assigned = event.assigned
  })
  return { state, end }
}
