import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { Button } from '../../components/button.tsx'
import { Card, CardBody } from '../../components/card.tsx'
import { Command } from '../../components/command.tsx'
import { LoadError, Skeleton } from '../../components/feedback.tsx'
import { Icon } from '../../components/icon.tsx'
import { toast } from '../../components/toast.tsx'
import { sourcesQuery } from '../../data/queries.ts'
import { useSimulation } from '../../data/simulation.ts'
import { useKeys } from '../../keys.ts'
import { Page } from '../../shell/page.tsx'
import type { PolicyRow, SimulationRequest } from '../../simulation/protocol.ts'
import {
  DEFAULT_SCENARIO,
  readScenario,
  type Scenario,
  scenarioSearch,
  simulateCommand,
  simulationSentence,
} from '../../words/scenario.ts'
import { NotFound } from '../not-found.tsx'
import { ResultCard } from './result-card.tsx'
import { ScenarioForm } from './scenario-form.tsx'
import '../../components/table.css'
import './policy.css'

const FROM = '/sources/$source/policy'
const CRUMBS = [{ label: 'Sources', to: '/sources' }]

/** What a policy does to a dependency after an outage. The address has the policy and the scenario. */
export function PolicyScreen() {
  const { source } = useParams({ from: FROM })
  const sources = useQuery(sourcesQuery)
  const found = { ...DEFAULT_SCENARIO, ...useSearch({ from: FROM }) }
  const [repeats, setRepeats] = useState(0)
  if (sources.data?.some((one) => one.source === source) === false) return <NotFound />
  return (
    <Page title="Policy" crumbs={CRUMBS}>
      {sources.data === undefined ? (
        <Card>
          {sources.error === null ? (
            <Skeleton rows={8} />
          ) : (
            <LoadError
              what="sources"
              error={sources.error}
              onRetry={() => void sources.refetch()}
            />
          )}
        </Card>
      ) : (
        // A new form for each address, so that Back also restores the fields, and for each repeated simulation.
        <Loaded
          key={JSON.stringify([found, repeats])}
          source={source}
          scenario={found}
          onRepeat={() => setRepeats(repeats + 1)}
        />
      )}
    </Page>
  )
}

interface LoadedProps {
  readonly source: string
  readonly scenario: Scenario
  /** Simulates the same scenario again. */
  readonly onRepeat: () => void
}

function Loaded({ source, scenario, onRepeat }: LoadedProps) {
  const navigate = useNavigate({ from: FROM })
  const [draft, setDraft] = useState(scenario)
  const read = readScenario(draft)
  const problem = 'problem' in read ? read.problem : undefined
  const [current] = useState(() => readScenario(scenario))
  const simulate = () => {
    // The address of the same scenario is the same, so it would start nothing after a stop or an error.
    if (JSON.stringify(draft) === JSON.stringify(scenario)) onRepeat()
    else void navigate({ search: scenarioSearch(draft) })
  }
  useKeys(problem === undefined ? { s: simulate } : {})
  const form = (
    <ScenarioForm
      scenario={draft}
      problem={problem}
      onChange={(changes) => setDraft({ ...draft, ...changes })}
      onSimulate={simulate}
    />
  )
  return 'request' in current ? (
    <Simulated source={source} request={current.request} form={form} />
  ) : (
    <>
      <Head source={source} sentence={current.problem} />
      <div className="columns policy-columns">
        <span />
        {form}
      </div>
    </>
  )
}

interface SimulatedProps {
  readonly source: string
  readonly request: SimulationRequest
  readonly form: React.ReactNode
}

function Simulated({ source, request, form }: SimulatedProps) {
  const { stop, ...simulation } = useSimulation(request)
  const { policy, own, other } = simulation
  const sentence =
    own === undefined || policy === undefined
      ? ''
      : simulationSentence(request, { own, other, calmMs: policy.calmMs })
  return (
    <>
      <Head
        source={source}
        sentence={sentence}
        action={
          <Button onClick={() => copy(request.policy.trim() === '' ? '{}' : request.policy)}>
            Copy the policy
          </Button>
        }
      />
      <div className="columns policy-columns">
        <div className="stack">
          <ResultCard request={request} simulation={simulation} onStop={stop} />
          <Card title="Command line">
            <CardBody>
              <Command text={simulateCommand(request)} label="Copy the command" />
            </CardBody>
          </Card>
        </div>
        <aside className="stack">
          {form}
          {policy === undefined ? null : <Effective rows={policy.rows} />}
        </aside>
      </div>
    </>
  )
}

const copy = (text: string) => {
  navigator.clipboard.writeText(text).then(
    () => toast({ text: 'Policy copied', tone: 'good' }),
    () =>
      toast({
        text: 'Cannot copy the policy. The browser denied access to the clipboard.',
        tone: 'warn',
      }),
  )
}

interface HeadProps {
  readonly source: string
  readonly sentence: string
  readonly action?: React.ReactNode
}

const Head = ({ source, sentence, action }: HeadProps) => (
  <section className="page-head policy-head">
    <div>
      <div className="page-meta">
        <Icon name="sources" />
        <Link to="/sources" search={{ source }} className="link">
          {source}
        </Link>
      </div>
      <h1>Policy of {source}</h1>
      <p className="quiet" role="status">
        {sentence}
      </p>
    </div>
    {action}
  </section>
)

const SET_BY: Readonly<Record<PolicyRow['setBy'], string>> = {
  options: 'this page',
  default: 'default',
  simulator: 'simulator',
}

/** The values of the policy with the defaults, and where each value comes from. */
const Effective = ({ rows }: { readonly rows: readonly PolicyRow[] }) => (
  <Card title="Effective policy" note="with the defaults">
    <table className="table policy-rows">
      <thead className="visually-hidden">
        <tr>
          <th scope="col">Rule</th>
          <th scope="col">Value</th>
          <th scope="col">Set in</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ name, value, setBy }) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{value}</td>
            <td className="num faint">{SET_BY[setBy]}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </Card>
)
