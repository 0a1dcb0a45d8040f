/** Every transport that was passed to a consumer. By its contract, a transport is opened once and closed once. */
const states = new WeakMap<object, 'in use' | 'closed'>()

/** Returns why no consumer can use the transport; undefined when one can. */
export function whyUnusable(transport: object, source: string): string | undefined {
  switch (states.get(transport)) {
    case 'in use':
      return `the transport of "${source}" is already used by another consumer; create one transport for each consumer`
    case 'closed':
      return `the transport of "${source}" was closed when its consumer stopped or did not start, and cannot be opened again; create a new transport`
    default:
      return undefined
  }
}

/** Reserves the transport for one consumer. The returned function marks it as closed. */
export function useTransport(transport: object): () => void {
  states.set(transport, 'in use')
  return () => void states.set(transport, 'closed')
}
