import './set-immediate.ts'
import { type PolicyOptions, readPolicyOptions, resolvePolicy } from '@redrive/core'
import { type NamedPolicy, simulateOutage, TEXTBOOK, type Weather } from '@redrive/storm'
import { CALM_MS, drainRatio, GOALS, TIMEOUT_MS } from '@redrive/storm/internal'
import { policyRows } from '../words/policy-rows.ts'
import type { SimulationResult, SimulationReport, SimulationRequest } from './protocol.ts'

const report = (message: SimulationReport) => postMessage(message)

addEventListener('message', ({ data }: MessageEvent<SimulationRequest>) => {
  simulate(data).catch((error: unknown) => {
    report({ kind: 'problem', text: error instanceof Error ? error.message : String(error) })
  })
})

async function simulate({ policy: text, weather, compare }: SimulationRequest): Promise<void> {
  const policy = optionsOf(text)
  const rows = policyRows(resolvePolicy({ timeout: TIMEOUT_MS, ...policy }), policy)
  report({ kind: 'policy', rows, goals: GOALS, calmMs: CALM_MS })
  const own = { name: 'own', title: 'This policy', policy }
  report({ kind: 'own', result: await simulateOne(own, weather) })
  const other = TEXTBOOK.find(({ name }) => name === compare)
  if (other !== undefined) report({ kind: 'other', result: await simulateOne(other, weather) })
  report({ kind: 'end' })
}

/** Reads the options of a policy. `redrive simulate policy.json` accepts the same text. */
function optionsOf(text: string): PolicyOptions {
  if (text.trim() === '') return {}
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (error) {
    const why = error instanceof Error ? error.message : ''
    throw new Error(`The policy is not valid JSON. ${why}`, { cause: error })
  }
  return readPolicyOptions(parsed)
}

async function simulateOne(
  { title, policy }: NamedPolicy,
  weather: Weather,
): Promise<SimulationResult> {
  const result = await simulateOutage({ ...weather, policy })
  const { attemptsPerMessage, falseDeadLetters, peak, load } = result
  return { title, attemptsPerMessage, falseDeadLetters, drainRatio: drainRatio(result), peak, load }
}
