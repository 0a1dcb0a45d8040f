import { createContext, use } from 'react'
import type { Me } from './queries.ts'

export const MeContext = createContext<Me | undefined>(undefined)

/** Returns the signed-in caller. Only inside the shell, which waits for the caller. */
export function useMe(): Me {
  const me = use(MeContext)
  if (me === undefined) throw new Error('useMe() is only available inside the shell.')
  return me
}
