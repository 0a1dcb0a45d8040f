import { createStore } from '../store.ts'

/** The open window of the shell: the palette, the list of keys, or none. */
export const overlay = createStore<'palette' | 'keys' | undefined>(undefined)
