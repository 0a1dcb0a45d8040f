import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { Button } from '../../components/button.tsx'
import { Card, CardBody } from '../../components/card.tsx'
import { Equivalents } from '../../components/command.tsx'
import { Empty, LoadError, Skeleton, problemOf } from '../../components/feedback.tsx'
import { Note } from '../../components/note.tsx'
import { Peer } from '../../components/peer.tsx'
import { useMe } from '../../data/me.ts'
import { can, canSomewhere } from '../../data/permissions.ts'
import { sourcesQuery } from '../../data/queries.ts'
import {
  type FingerprintPreview,
  type FingerprintRule,
  fingerprintsQuery,
  previewFingerprints,
} from '../../data/settings.ts'
import { apiText } from '../../words/equivalents.ts'
import { matchText, withDraft } from '../../words/fingerprints.ts'
import { countText } from '../../words/numbers.ts'
import type { Draft } from '../../words/rule-draft.ts'
import { ApplyDialog } from './apply-fingerprints.tsx'
import { Preview } from './fingerprint-preview.tsx'
import { RuleForm } from './rule-form.tsx'
import { SettingsPage } from './settings-page.tsx'
import '../../components/table.css'

interface DryRun {
  readonly title: string
  readonly found: FingerprintPreview
}

/** The rules that name groups, with a dry run. The address has the rule that is tried. */
export function Fingerprints() {
  const rules = useQuery(fingerprintsQuery)
  const draft: Draft = useSearch({ from: '/settings/fingerprints' })
  const navigate = useNavigate({ from: '/settings/fingerprints' })
  const [dryRun, setDryRun] = useState<DryRun>()
  const [problem, setProblem] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  const [isApplying, setApplying] = useState(false)
  const allowed = useSourcesToApply()
  const preview = (title: string, given?: readonly FingerprintRule[]) => {
    setBusy(true)
    setProblem(undefined)
    previewFingerprints(given === undefined ? {} : { rules: given })
      .then((found) => setDryRun({ title, found }))
      .catch((error: unknown) => setProblem(problemOf(error).detail))
      .finally(() => setBusy(false))
  }
  const busy = isBusy ? 'A dry run is in progress.' : undefined
  const known = rules.data ?? []
  return (
    <SettingsPage tab="fingerprints">
      <div className="columns settings-rules">
        <div className="stack">
          <Card
            title="Rules"
            note="the first match decides, before the built-in rules"
            {...(known.length === 0
              ? {}
              : {
                  footer: (
                    <>
                      <span className="settings-hint">
                        Rules are <code>fingerprints</code> in the config of the server. They apply
                        to new dead letters.
                      </span>
                      <Button size="small" disabledReason={busy} onClick={() => preview('Dry run')}>
                        Dry run
                      </Button>
                      {allowed.isVisible ? (
                        <Button
                          size="small"
                          disabledReason={allowed.refusal}
                          onClick={() => setApplying(true)}
                        >
                          Apply to open dead letters…
                        </Button>
                      ) : null}
                    </>
                  ),
                })}
          >
            {rules.data === undefined ? (
              rules.error === null ? (
                <Skeleton rows={3} />
              ) : (
                <LoadError
                  what="fingerprint rules"
                  error={rules.error}
                  onRetry={() => void rules.refetch()}
                />
              )
            ) : known.length === 0 ? (
              <Empty title="The config has no rule.">
                The built-in rules make the groups. Try a rule on this page, then add it to the
                config.
              </Empty>
            ) : (
              <Rules rules={known} />
            )}
          </Card>
          {problem === undefined ? null : (
            <Note tone="bad" shape="fail" role="alert">
              <b>The dry run failed.</b> {problem}
            </Note>
          )}
          {dryRun === undefined ? null : <Preview title={dryRun.title} found={dryRun.found} />}
          <Card title="Command line">
            <CardBody>
              <Equivalents
                cli="redrive fingerprints test"
                api={apiText('POST /api/v1/fingerprints/preview', {})}
              />
            </CardBody>
          </Card>
        </div>
        <RuleForm
          draft={draft}
          busy={busy}
          onChange={(changes) =>
            void navigate({ search: (search) => ({ ...search, ...changes }), replace: true })
          }
          onTry={(rule) => preview(`Dry run of ${rule.name}`, withDraft(known, rule))}
        />
      </div>
      {isApplying ? (
        <ApplyDialog sources={allowed.sources} onClose={() => setApplying(false)} />
      ) : null}
    </SettingsPage>
  )
}

/** Returns the sources whose dead letters the caller may move. */
function useSourcesToApply() {
  const me = useMe()
  const all = useQuery(sourcesQuery).data ?? []
  const sources = all.map(({ source }) => source).filter((source) => can(me, 'discard', source))
  return {
    isVisible: canSomewhere(me, 'discard'),
    sources,
    refusal: sources.length === 0 ? 'Permission discard is required on a source.' : undefined,
  }
}

const Rules = ({ rules }: { readonly rules: readonly FingerprintRule[] }) => (
  <table className="table">
    <thead>
      <tr>
        <th scope="col" className="num settings-order">
          Order
        </th>
        <th scope="col">Rule</th>
        <th scope="col">Group</th>
      </tr>
    </thead>
    <tbody>
      {rules.map((rule, at) => (
        <tr key={rule.name}>
          <td className="num quiet">{countText(at + 1)}</td>
          <td>
            <b>{rule.name}</b>
            <div className="quiet small">
              if <Peer text={matchText(rule)} />
            </div>
          </td>
          <td className="mono">{rule.group}</td>
        </tr>
      ))}
    </tbody>
  </table>
)
