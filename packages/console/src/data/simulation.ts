import { useEffect, useState } from 'react'
import type {
  Goals,
  PolicyRow,
  SimulationResult,
  SimulationReport,
  SimulationRequest,
} from '../simulation/protocol.ts'
// oxlint-disable-next-line import/default -- Vite exports the address of the built worker
import workerUrl from '../simulation/worker.ts?worker&url'

export interface Simulation {
  readonly isRunning: boolean
  readonly policy?: {
    readonly rows: readonly PolicyRow[]
    readonly goals: Goals
    readonly calmMs: number
  }
  readonly own?: SimulationResult
  readonly other?: SimulationResult
  readonly problem?: string
}

const FIRST: Simulation = { isRunning: true }

/** Returns the state after a report of the worker. */
function after(state: Simulation, report: SimulationReport): Simulation {
  switch (report.kind) {
    case 'policy':
      return { ...state, policy: report }
    case 'own':
      return { ...state, own: report.result }
    case 'other':
      return { ...state, other: report.result }
    case 'end':
      return { ...state, isRunning: false }
    case 'problem':
      return { ...state, isRunning: false, problem: report.text }
  }
}

/** Simulates a policy in a worker while the component is mounted. A changed request needs a new component. */
export function useSimulation(request: SimulationRequest) {
  const [state, setState] = useState(FIRST)
  const [isStopped, setStopped] = useState(false)
  useEffect(() => {
    if (isStopped) return undefined
    const worker = new Worker(trusted(workerUrl))
    worker.addEventListener('message', ({ data }: MessageEvent<SimulationReport>) =>
      setState((now) => after(now, data)),
    )
    worker.addEventListener('error', ({ message }) =>
      setState((now) =>
        after(now, { kind: 'problem', text: message || 'The worker did not start.' }),
      ),
    )
    worker.postMessage(request)
    return () => worker.terminate()
    // The request of a mounted component does not change.
  }, [isStopped, request])
  const stop = () => {
    setStopped(true)
    setState((now) => ({ ...now, isRunning: false }))
  }
  return { ...state, isStopped, stop }
}

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { readonly createScriptURL: (url: string) => string },
  ): { createScriptURL(url: string): string }
}

/** The content security policy requires a trusted address for a worker. Only the address of the build is trusted. */
const policy = (globalThis as { readonly trustedTypes?: TrustedTypes }).trustedTypes?.createPolicy(
  'redrive-simulation',
  {
    createScriptURL(url) {
      if (url !== workerUrl) throw new TypeError('Only the worker of the simulator is trusted.')
      return url
    },
  },
)

const trusted = (url: string): string => policy?.createScriptURL(url) ?? url
