import { createStore } from '../store.ts'

/** Whether the server responds. `lastAt`: when it last did, epoch ms. */
export type Connection =
  | { readonly state: 'ok' }
  | { readonly state: 'lost'; readonly since: number; readonly lastAt: number | undefined }

export const connection = createStore<Connection>({ state: 'ok' })
/** Whether the session ended while the page was open. */
export const sessionEnded = createStore(false)

let lastAt: number | undefined

/** Calls `fetch` and records whether the server responded and whether the session is valid. */
export const watchedFetch: typeof fetch = async (input, init) => {
  try {
    const response = await fetch(input, init)
    lastAt = Date.now()
    connection.set(OK)
    sessionEnded.set(response.status === 401)
    return response
  } catch (error) {
    if (init?.signal?.aborted !== true && connection.get().state === 'ok') {
      connection.set({ state: 'lost', since: Date.now(), lastAt })
    }
    throw error
  }
}

const OK: Connection = { state: 'ok' }
