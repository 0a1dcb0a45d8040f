import { useQuery } from '@tanstack/react-query'
import { Card, CardBody } from '../../components/card.tsx'
import { Equivalents } from '../../components/command.tsx'
import { Empty, LoadError, Skeleton } from '../../components/feedback.tsx'
import { Icon } from '../../components/icon.tsx'
import { Status, Tag } from '../../components/status.tsx'
import { masksQuery } from '../../data/settings.ts'
import { apiText } from '../../words/equivalents.ts'
import { DETECTOR_NAMES, maskRows } from '../../words/masks.ts'
import { SettingsPage } from './settings-page.tsx'
import '../../components/table.css'

/** What is hidden from callers without permission `view_unmasked`. The config of the server decides it. */
export function Masks() {
  const masks = useQuery(masksQuery)
  return (
    <SettingsPage tab="masks">
      {masks.data === undefined ? (
        <Card>
          {masks.error === null ? (
            <Skeleton />
          ) : (
            <LoadError what="masks" error={masks.error} onRetry={() => void masks.refetch()} />
          )}
        </Card>
      ) : (
        <div className="columns">
          <div className="stack">
            <MaskTable rows={maskRows(masks.data.sources)} />
            <Detectors enabled={masks.data.detectors} />
          </div>
          <aside className="stack">
            <Card title="Change it">
              <CardBody>
                <p className="small quiet">
                  Masks are <code>mask</code> and <code>maskHeaders</code> of a source, and
                  detectors are <code>masking.detectors</code>, in the config of the server. They
                  also apply to stored messages.
                </p>
              </CardBody>
            </Card>
            <Card title="Always hidden">
              <CardBody>
                <p className="small quiet">
                  Headers whose names end with a word such as authorization, cookie, password, token
                  or api-key, in every source.
                </p>
              </CardBody>
            </Card>
            <Card title="Command line">
              <CardBody>
                <Equivalents cli="redrive config print" api={apiText('GET /api/v1/masks')} />
              </CardBody>
            </Card>
          </aside>
        </div>
      )}
    </SettingsPage>
  )
}

const MaskTable = ({ rows }: { readonly rows: ReturnType<typeof maskRows> }) => (
  <Card title="Masks" note="hidden without permission view_unmasked">
    {rows.length === 0 ? (
      <Empty title="No source has a mask.">
        Detectors still hide values that they recognize. Bodies are shown otherwise.
      </Empty>
    ) : (
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Source</th>
            <th scope="col">Path or header</th>
            <th scope="col">
              <span className="visually-hidden">Notes</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, source, what, isHeader, isOptional }) => (
            <tr key={key}>
              <td className="strong">{source}</td>
              <td>
                {isHeader ? <span className="faint">header </span> : null}
                <code>{what}</code>
              </td>
              <td className="num">
                <span className="settings-note">
                  {isOptional ? <Tag text="optional" /> : null}
                  <Icon name="lock" className="faint" />
                  <span className="visually-hidden">set in the config</span>
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    )}
  </Card>
)

const Detectors = ({ enabled }: { readonly enabled: readonly string[] }) => (
  <Card
    title="Detectors"
    note="hide values by their content, in bodies, headers and error messages"
  >
    <table className="table">
      <thead>
        <tr>
          <th scope="col">Detector</th>
          <th scope="col" className="only-wide">
            Shown as
          </th>
          <th scope="col">State</th>
        </tr>
      </thead>
      <tbody>
        {Object.entries(DETECTOR_NAMES).map(([name, { label, note, shown }]) => (
          <tr key={name}>
            <td>
              <b>{label}</b>
              <div className="quiet small">{note}</div>
            </td>
            <td className="only-wide">
              <code>{shown}</code>
            </td>
            <td>
              {enabled.includes(name) ? (
                <Status state="done" text="On" />
              ) : (
                <Status state="muted" text="Off" />
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </Card>
)
