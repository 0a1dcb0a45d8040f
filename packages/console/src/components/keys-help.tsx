import { singleKeys } from '../preferences.ts'
import { useStore } from '../store.ts'
import { Dialog } from './dialog.tsx'
import { Kbd } from './kbd.tsx'
import './keys-help.css'

// biome-ignore format: one row per key
const KEYS: readonly (readonly [keys: string, meaning: string])[] = [
  ['/', 'Filter this page'], ['Ctrl K', 'Go to…'],
  ['j k', 'Next, previous'], ['↵', 'Open'],
  ['x', 'Select'], ['⇧ x', 'Select a range'],
  ['← →', 'Fold, unfold a section'], ['esc', 'Clear, close'],
  ['r', 'Replay…'], ['d', 'Discard…'],
  ['a', 'Assign to me'], ['m', 'Mute…'],
  ['c', 'Comment'], ['[ ]', 'Previous, next tab'],
  ['g o', 'Overview'], ['g g', 'Groups'],
  ['g m', 'Messages'], ['g r', 'Replays'],
  ['g a', 'Approvals'], ['g s', 'Sources'],
  ['s', 'Simulate a policy'], ['p', 'Pause a run'],
  ['t', 'Relative, local, UTC'], ['l', 'Live updates on, off'],
  ['y', 'Copy the link of this page'], ['?', 'Keys'],
]

export const KeysList = () => (
  <dl className="keys-list">
    {KEYS.map(([keys, meaning]) => (
      <div key={keys}>
        <dt>
          <Kbd keys={keys} />
        </dt>
        <dd>{meaning}</dd>
      </div>
    ))}
  </dl>
)

/** The list of keys, and the switch that disables single keys. */
export function KeysHelp({ onClose }: { readonly onClose: () => void }) {
  const isOn = useStore(singleKeys) === 'on'
  return (
    <Dialog title="Keys" onClose={onClose}>
      <div className="dialog-body">
        <KeysList />
        <label className="row small">
          <input
            type="checkbox"
            className="checkbox"
            checked={isOn}
            onChange={({ target }) => singleKeys.set(target.checked ? 'on' : 'off')}
          />
          Use single keys as shortcuts
        </label>
      </div>
    </Dialog>
  )
}
