create schema if not exists shop;

create table if not exists shop.products (
  sku text primary key,
  stock integer not null check (stock >= 0)
);

create table if not exists shop.orders (
  id text primary key,
  sku text not null references shop.products,
  amount_cents integer not null check (amount_cents > 0),
  currency text not null
);

-- Received payments. Without a unique key on purpose: an order that is booked twice would be visible
-- here. Only the inbox prevents that.
create table if not exists shop.ledger (
  entry bigint generated always as identity primary key,
  order_id text not null references shop.orders,
  amount_cents integer not null
);
